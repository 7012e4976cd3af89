/** Pattern of a JSON Web Token. */
const SESSION_TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Shows the token of a login with an identity provider, or describes how to log in. */
function showLogin(): void {
  const { token, missing_assertions: isMissing } = takeParameters();
  if (token !== undefined) {
    const link = readLink({ token: SESSION_TOKEN });
    if (link) showToken(link.token);
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
  const form = byId<HTMLFormElement>("second-factor");
  showOnly(form.id);
  onSubmit(form, async ({ code }) => {
    const answer = await call("POST", "api/user/mfa/auth", { token: link.token, code });
    const token = tokenIn(answer);
    if (token !== undefined) return showToken(token);
    if (answer.status !== 401) return showErrors(form, answer);
    showMessage(
      "bad",
      "The code is wrong or has already been used. Enter the next code.",
      "If you logged in more than 30 minutes ago, log in again.",
    );
  });
}

function showToken(token: string): void {
  forgetLink();
  showOnly("signed-in");
  showMessage("good", "You are logged in.");
  const field = byId<HTMLInputElement>("token");
  field.value = token;
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(token);
      showMessage("good", "The token is copied.");
    } catch {
      // Browsers offer no clipboard to pages without HTTPS, and copy nothing from a password field.
      field.type = "text";
      showMessage("note", "The browser does not allow this page to copy. Copy the selected token.");
      field.select();
    }
  });
}
