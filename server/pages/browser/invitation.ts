type Invitation = Readonly<Record<"tenant-id" | "user-id" | "email" | "sig", string>>;

const NO_INVITATION =
  "This invitation has already been accepted, was withdrawn or replaced, or is older than 7 days.";
const MEMBER = "You are now a member of the namespace.";
const CONFIRM_FIRST = "Your account is not confirmed yet. Open the link in the confirmation mail.";
const LATE = "If you entered the password more than 30 minutes ago, reload this page.";
const THEN_AGAIN = "Then open the link of this invitation again.";

async function acceptInvitation(): Promise<void> {
  const invitation = readLink({ "tenant-id": UUID, "user-id": USER_ID, email: EMAIL, sig: ANYTHING });
  if (!invitation) return;
  byId("address").textContent = invitation.email;
  byId("whom").hidden = false;
  offerSignUp(invitation);
  // An invited user can already have an account only in the cloud edition. In other editions, the page shows only the
  // sign-up form.
  if (!separatesSignUp()) return showOnly("sign-up");
  offerLogin(invitation);
  showMessage("busy", "Please wait …");
  const { "tenant-id": tenant, "user-id": user, sig } = invitation;
  const path = `api/namespaces/${tenant}/members/${user}/accept-invite`;
  const answer = await call("GET", `${path}?${new URLSearchParams({ sig })}`);
  if (answer.status === 403 || answer.status === 404) return showMessage("bad", NO_INVITATION);
  if (answer.status !== 200) return showMessage("bad", reasonOf(answer));
  const { status } = answer.body as { readonly status: "invited" | "not-confirmed" | "confirmed" };
  if (status === "not-confirmed") {
    offerMail(invitation.email);
    return showMessage("note", CONFIRM_FIRST, THEN_AGAIN);
  }
  showOnly(status === "invited" ? "sign-up" : "log-in");
  showMessage(
    "note",
    status === "invited" ? "Create an account to accept the invitation." : "Log in to accept the invitation.",
  );
}

/** True if the edition accepts an invitation in a separate request after sign-up. */
const separatesSignUp = (): boolean => byId("whom").dataset.separateSignUp === "true";

function offerSignUp(invitation: Invitation): void {
  const form = byId<HTMLFormElement>("sign-up");
  const { email, sig } = invitation;
  onSubmit(form, async ({ name, username, password }) => {
    const marketing = inputOf(form, "email_marketing")?.checked ?? false;
    const account = { name, username, password, email, email_marketing: marketing, sig };
    const answer = await call("POST", "api/register", account);
    if (answer.status === 401)
      return showMessage("bad", NO_INVITATION, "An invitation is valid only for the address above.");
    if (answer.status !== 200) return showErrors(form, answer);
    const token = tokenIn(answer);
    if (!separatesSignUp()) return finish("Your account is created.", MEMBER, LOG_IN);
    if (token !== undefined) return accept(invitation, token);
    showOnly(undefined);
    showMessage("note", CONFIRM_FIRST, THEN_AGAIN);
  });
}

function offerLogin(invitation: Invitation): void {
  const form = byId<HTMLFormElement>("log-in");
  const name = inputOf(form, "username");
  if (name) name.value = invitation.email;
  let waiting = "";
  onSubmit(form, async (credentials) => {
    const answer = await call("POST", "api/login", credentials);
    const token = tokenIn(answer);
    if (token !== undefined) return accept(invitation, token);
    waiting = answer.headers.get("X-MFA-Token") ?? "";
    if (waiting === "") return showErrors(form, answer);
    showOnly("second-factor");
    showMessage("note", "The password is correct. Enter the code of your second factor.");
  });
  const second = byId<HTMLFormElement>("second-factor");
  onSubmit(second, async ({ code }) => {
    const answer = await call("POST", "api/user/mfa/auth", { token: waiting, code });
    const token = tokenIn(answer);
    if (token !== undefined) return accept(invitation, token);
    if (answer.status !== 401) return showErrors(second, answer);
    showMessage("bad", "The code is wrong or has already been used. Enter the next code.", LATE);
  });
}

/** Returns the session token in a response. The page uses the token only to accept the invitation. */
const tokenIn = ({ status, body }: Answer): string | undefined =>
  status === 200 ? (body as { readonly token: string } | undefined)?.token : undefined;

async function accept(invitation: Invitation, token: string): Promise<void> {
  const path = `api/namespaces/${invitation["tenant-id"]}/members/accept-invite`;
  const answer = await call("PATCH", path, { sig: invitation.sig }, token);
  if (answer.status === 200) return finish(MEMBER, LOG_IN);
  showOnly("log-in");
  if (answer.status === 403)
    return showMessage("bad", "This invitation is for another user. Log in as the invited user.");
  showMessage("bad", answer.status === 404 ? NO_INVITATION : reasonOf(answer), "Log in to try again.");
}
