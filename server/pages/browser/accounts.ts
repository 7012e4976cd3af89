const LOG_IN = "You can now log in, with the console or the command that you use with this service.";

function setUp(): void {
  const link = readLink({ sign: ANYTHING });
  if (!link) return;
  const form = byId<HTMLFormElement>("first-user");
  showOnly(form.id);
  onSubmit(form, async (values) => {
    const answer = await call("POST", `api/setup?sign=${encodeURIComponent(link.sign)}`, values);
    if (answer.status === 200)
      return finish(`The service is set up, and ${values.username} is its first user.`, LOG_IN);
    if (answer.status === 403)
      return say(
        "bad",
        "This link makes nobody: the service has its first user already, or another link by now.",
        "The command gatehouse-server admin setup-link prints the present one, and says if it is used.",
      );
    sayRefusal(form, answer);
  });
}

function confirmAccount(): void {
  const link = readLink({ email: EMAIL, token: UUID });
  if (!link) return;
  const form = byId<HTMLFormElement>("confirm");
  byId("address").textContent = link.email;
  showOnly(form.id);
  onSubmit(form, async () => {
    const answer = await call("GET", `api/user/validation_account?${new URLSearchParams(link)}`);
    if (answer.status === 200) return finish("The account is confirmed.", LOG_IN);
    if (answer.status !== 404 && answer.status !== 400) return sayRefusal(form, answer);
    offerMail(link.email);
    say("bad", "This link was used already, is older than 24 hours, or a newer mail has made it void.");
  });
}

/** Offers to send another mail that confirms the account of the address. */
function offerMail(email: string): void {
  const form = byId<HTMLFormElement>("another-mail");
  showOnly(form.id);
  onSubmit(form, async () => {
    const answer = await call("POST", "api/user/resend_email", { username: email });
    if (answer.status !== 200) return sayRefusal(form, answer);
    showOnly(undefined);
    say("good", "If an account with this address waits to be confirmed, a mail is on its way there.");
  });
}

function confirmAddress(): void {
  const link = readLink({ id: USER_ID, token: UUID });
  if (!link) return;
  const form = byId<HTMLFormElement>("confirm");
  showOnly(form.id);
  onSubmit(form, async (values) => {
    const answer = await call("POST", "api/user/confirm_address", { ...link, ...values });
    if (answer.status === 200) return finish("The address is confirmed, and belongs to your account now.");
    if (answer.status !== 401) return sayRefusal(form, answer);
    say("bad", "This link was used already, is too old, or a later change has made it void.");
  });
}

function choosePassword(): void {
  const link = readLink({ id: USER_ID, token: UUID });
  if (!link) return;
  const form = byId<HTMLFormElement>("new-password");
  showOnly(form.id);
  onSubmit(form, async ({ password }) => {
    const answer = await call("POST", `api/user/${link.id}/update_password`, { password, token: link.token });
    if (answer.status === 200)
      return finish("The new password is set, and every login from before has ended.", LOG_IN);
    if (answer.status !== 401) return sayRefusal(form, answer);
    say(
      "bad",
      "This link was used already, is older than 24 hours, or a newer mail has made it void.",
      "Ask for another mail where you asked for this one.",
    );
  });
}

function resetSecondFactor(): void {
  const link = readLink({ id: USER_ID });
  if (!link) return;
  const form = byId<HTMLFormElement>("codes");
  showOnly(form.id);
  onSubmit(form, async (values) => {
    const codes = Object.fromEntries(
      Object.entries(values).map(([name, code]) => [name, code.toUpperCase()]),
    );
    // The response is a session, which is not used: this page is no console.
    const answer = await call("PUT", `api/user/mfa/reset/${link.id}`, codes);
    if (answer.status === 200)
      return finish(
        "The second factor is off, and every login from before has ended.",
        "Log in with your password alone, and turn it on again soon.",
      );
    sayRefusal(form, answer);
  });
}
