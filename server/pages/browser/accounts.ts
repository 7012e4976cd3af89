const LOG_IN = "You can now log in with the console or the command that you use for this service.";

function setUp(): void {
  const link = readLink({ sign: ANYTHING });
  if (!link) return;
  const form = showForm("first-user");
  onSubmit(form, async (values) => {
    const answer = await call("POST", `api/setup?sign=${encodeURIComponent(link.sign)}`, values);
    if (answer.status === 200)
      return finish(`The service is set up, and ${values.username} is its first user.`, LOG_IN);
    if (answer.status === 403)
      return showMessage(
        "bad",
        "This link cannot create the first user: the user already exists, or a newer link has replaced this link.",
        "Run gatehouse-server admin setup-link to print the current link or to see whether it has been used.",
      );
    showErrors(form, answer);
  });
}

function confirmAccount(): void {
  const link = readLink({ email: EMAIL, token: UUID });
  if (!link) return;
  const form = showForm("confirm");
  byId("address").textContent = link.email;
  onSubmit(form, async () => {
    const answer = await call("GET", `api/user/validation_account?${new URLSearchParams(link)}`);
    if (answer.status === 200) return finish("The account is confirmed.", LOG_IN);
    if (answer.status !== 404 && answer.status !== 400) return showErrors(form, answer);
    offerMail(link.email);
    showMessage(
      "bad",
      "This link has already been used, is older than 24 hours, or was replaced by a newer mail.",
    );
  });
}

/** Shows the form that requests another confirmation mail for the account with this e-mail address. */
function offerMail(email: string): void {
  const form = showForm("another-mail");
  onSubmit(form, async () => {
    const answer = await call("POST", "api/user/resend_email", { username: email });
    if (answer.status !== 200) return showErrors(form, answer);
    showOnly(undefined);
    showMessage("good", "If an unconfirmed account has this address, a confirmation mail has been sent.");
  });
}

function confirmAddress(): void {
  const link = readLink({ id: USER_ID, token: UUID });
  if (!link) return;
  const form = showForm("confirm");
  onSubmit(form, async (values) => {
    const answer = await call("POST", "api/user/confirm_address", { ...link, ...values });
    if (answer.status === 200) return finish("The address is confirmed and now belongs to your account.");
    if (answer.status !== 401) return showErrors(form, answer);
    showMessage("bad", "This link has already been used, has expired, or was invalidated by a later change.");
  });
}

function choosePassword(): void {
  const link = readLink({ id: USER_ID, token: UUID });
  if (!link) return;
  const form = showForm("new-password");
  onSubmit(form, async ({ password }) => {
    const answer = await call("POST", `api/user/${link.id}/update_password`, { password, token: link.token });
    if (answer.status === 200)
      return finish("The new password is set, and all earlier logins have ended.", LOG_IN);
    if (answer.status !== 401) return showErrors(form, answer);
    showMessage(
      "bad",
      "This link has already been used, is older than 24 hours, or was replaced by a newer mail.",
      "Request a new mail where you requested this mail.",
    );
  });
}

function resetSecondFactor(): void {
  const link = readLink({ id: USER_ID });
  if (!link) return;
  const form = showForm("codes");
  onSubmit(form, async (values) => {
    const codes = Object.fromEntries(
      Object.entries(values).map(([name, code]) => [name, code.toUpperCase()]),
    );
    // The response contains a session. The page ignores the session, because the page has no functions for a logged-in
    // user.
    const answer = await call("PUT", `api/user/mfa/reset/${link.id}`, codes);
    if (answer.status === 200)
      return finish(
        "The second factor is turned off, and all earlier logins have ended.",
        "Log in with your password only. Then turn the second factor on again.",
      );
    showErrors(form, answer);
  });
}
