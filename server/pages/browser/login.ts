/** Pattern of a JSON Web Token. */
const SESSION_TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The fields of a user's session that the page shows. */
interface Session {
  readonly token: string;
  /** The user name. */
  readonly user: string;
}

/** Shows the token of a login with an identity provider. If there is no such login, describes how to log in. */
async function showLogin(): Promise<void> {
  const { token, missing_assertions: isMissing } = takeParameters();
  if (token !== undefined) {
    const link = readLink({ token: SESSION_TOKEN });
    if (link) await showSession(link.token);
    return;
  }
  showOnly("how");
  if (isMissing === undefined) return;
  showMessage(
    "bad",
    "Your identity provider sent no usable e-mail address.",
    "Contact the administrator of the identity provider.",
  );
}

function completeLogin(): void {
  const link = readLink({ token: UUID });
  if (!link) return;
  const form = showForm("second-factor");
  onSubmit(form, async ({ code }) => {
    const answer = await call("POST", "api/user/mfa/auth", { token: link.token, code });
    if (answer.status === 200) return showToken(answer.body as Session);
    if (answer.status !== 401) return showErrors(form, answer);
    showMessage(
      "bad",
      "The code is wrong or has already been used. Enter the next code.",
      "If you logged in more than 30 minutes ago, log in again.",
    );
  });
}

/** Shows the token from a link, with the name of its user, if the service accepts the token. */
async function showSession(token: string): Promise<void> {
  showOnly(undefined);
  showMessage("busy", "Please wait …");
  const answer = await call("GET", "api/auth/user", undefined, token);
  if (answer.status === 200) return showToken({ ...(answer.body as Session), token });
  if (answer.status !== 401) return showMessage("bad", reasonOf(answer), "Reload the page to try again.");
  forgetLink();
  showOnly("how");
  showMessage("bad", "The token in this link is invalid or has expired.", "Log in again.");
}

function showToken({ token, user }: Session): void {
  forgetLink();
  showOnly("signed-in");
  showMessage("good", `You are logged in as ${user}.`);
  const field = byId<HTMLInputElement>("token");
  field.value = token;
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(token);
      showMessage("good", "The token is copied.");
    } catch {
      // Use a readable field: browsers give pages without HTTPS no access to the clipboard, and copy nothing from a
      // password field.
      field.type = "text";
      showMessage("note", "The browser does not allow this page to copy. Copy the selected token.");
      field.select();
    }
  });
}
