import { type Operation, operations } from "@gatehouse-access/sdk/contract";
import { type Field, formHtml } from "./fields.ts";

type OperationId = keyof typeof operations;

export interface PageSource {
  readonly title: string;
  /** HTML of the page's `<main>` element below the title. The HTML is the same for all requests. */
  readonly body: string;
  /** Names of the scripts that only this page needs. They are files in the folder `browser`, without the extension. */
  readonly scripts: readonly string[];
  /** Name of the function that starts the page's script. */
  readonly start: string;
}

/** A page with its path, and the operations that its script calls. */
interface LinkedPage extends PageSource {
  readonly path: string;
  readonly needs: readonly OperationId[];
}

const { setup, registerUser, updateRecoverPassword, confirmAddress, resetMfa, login, authMfa } = operations;

type Schema = Field["schema"];

const nameField = (schema: Schema): Field => ({
  name: "name",
  schema,
  label: "Your name",
  autocomplete: "name",
});
const usernameField = (schema: Schema): Field => ({
  name: "username",
  schema,
  label: "User name",
  autocomplete: "username",
  hint: "letters, digits, - _ . @",
});
const newPasswordField = (schema: Schema, hint = ""): Field => ({
  name: "password",
  schema,
  label: "New password",
  type: "password",
  autocomplete: "new-password",
  hint,
});

const ANOTHER_MAIL = formHtml("another-mail", [], "Send another confirmation mail");
const ADDRESS = `<bdi id="address"></bdi>`;

const SETUP: LinkedPage = {
  path: "/setup",
  needs: ["setup"],
  title: "Set up this service",
  body:
    "<p>This creates the first user, and a namespace that the user owns.</p>\n" +
    formHtml(
      "first-user",
      [
        nameField(setup.body.shape.name),
        {
          name: "email",
          schema: setup.body.shape.email,
          label: "E-mail address",
          type: "email",
          autocomplete: "email",
        },
        usernameField(setup.body.shape.username),
        newPasswordField(setup.body.shape.password),
      ],
      "Create the first user",
    ),
  scripts: ["accounts"],
  start: "setUp",
};

const CONFIRM_ACCOUNT: LinkedPage = {
  path: "/validation-account",
  needs: ["validateAccount", "resendEmail"],
  title: "Confirm your account",
  body: `<p>An account was created with the address ${ADDRESS}.</p>\n${formHtml("confirm", [], "Confirm the account")}${ANOTHER_MAIL}`,
  scripts: ["accounts"],
  start: "confirmAccount",
};

const passwordField = (schema: Schema): Field => ({
  name: "password",
  schema,
  label: "Password",
  type: "password",
  autocomplete: "current-password",
});
const codeField = (schema: Schema): Field => ({
  name: "code",
  schema,
  label: "Code of your second factor",
  autocomplete: "one-time-code",
  inputMode: "numeric",
  hint: "6 digits",
});

const CONFIRM_ADDRESS: LinkedPage = {
  path: "/confirm-address",
  needs: ["confirmAddress"],
  title: "Confirm your e-mail address",
  body:
    "<p>This e-mail address was added to your account. Confirm it to finish.</p>\n" +
    formHtml(
      "confirm",
      [
        passwordField(confirmAddress.body.shape.password),
        {
          ...codeField(confirmAddress.body.shape.code),
          hint: "6 digits; required only if you use a second factor",
          optional: true,
        },
      ],
      "Confirm the address",
    ),
  scripts: ["accounts"],
  start: "confirmAddress",
};

const NEW_PASSWORD: LinkedPage = {
  path: "/update-password",
  needs: ["updateRecoverPassword"],
  title: "Choose a new password",
  body: formHtml(
    "new-password",
    [newPasswordField(updateRecoverPassword.body.shape.password)],
    "Set the password",
  ),
  scripts: ["accounts"],
  start: "choosePassword",
};

const RESET_MFA: LinkedPage = {
  path: "/reset-mfa",
  needs: ["resetMfa"],
  title: "Turn off your second factor",
  body:
    "<p>You receive two mails with one code each. Enter both codes.</p>\n" +
    formHtml(
      "codes",
      [
        {
          name: "main_email_code",
          schema: resetMfa.body.shape.main_email_code,
          label: "First code, sent to your e-mail address",
          autocomplete: "one-time-code",
        },
        {
          name: "recovery_email_code",
          schema: resetMfa.body.shape.recovery_email_code,
          label: "Second code, sent to your recovery e-mail address",
          autocomplete: "one-time-code",
        },
      ],
      "Turn off the second factor",
    ),
  scripts: ["accounts"],
  start: "resetSecondFactor",
};

const MARKETING = `<p class="check"><label><input type="checkbox" name="email_marketing"> Send me news by mail</label></p>\n`;

const SIGN_UP = formHtml(
  "sign-up",
  [
    nameField(registerUser.body.shape.name),
    usernameField(registerUser.body.shape.username),
    newPasswordField(registerUser.body.shape.password, "1 to 64 letters, digits, - and _"),
  ],
  "Create an account and accept",
  MARKETING,
);

const LOG_IN = formHtml(
  "log-in",
  [
    {
      name: "username",
      schema: login.body.shape.username,
      label: "User name or e-mail address",
      autocomplete: "username",
    },
    passwordField(login.body.shape.password),
  ],
  "Log in and accept",
);

const SECOND_FACTOR = formHtml("second-factor", [codeField(authMfa.body.shape.code)], "Accept");

/**
 * Returns the page that accepts an invitation.
 * @param separatesSignUp true if the edition accepts an invitation in a separate request after sign-up or login
 */
const invitation = (separatesSignUp: boolean): LinkedPage => ({
  path: "/accept-invite",
  needs: ["registerUser"],
  title: "Accept an invitation",
  body:
    `<p id="whom" data-separate-sign-up="${separatesSignUp}" hidden>You are invited to a namespace of this service with the address ${ADDRESS}.</p>\n` +
    [SIGN_UP, ...(separatesSignUp ? [LOG_IN, SECOND_FACTOR, ANOTHER_MAIL] : [])].join(""),
  scripts: ["accounts", "invitation"],
  start: "acceptInvitation",
});

const NO_CONSOLE = `<p>This service has no web console. Use one of these programs with your user name and password:</p>
<ul>
<li>the command <code>gatehouse</code>, which reviews, applies and checks access policies in Pulumi and Terraform</li>
<li><a href="docs">the API</a>, to read and to try (<a href="openapi.json">OpenAPI description</a>)</li>
</ul>
`;

const start = (consoleUrl: string | undefined): LinkedPage => ({
  path: "/",
  needs: ["getInfo", "healthcheck"],
  title: "Remote access to devices",
  body: `<p>This service controls who can log in to devices by SSH.</p>
<dl>
<div><dt>Status</dt><dd id="health" aria-live="polite">…</dd></div>
<div><dt>API version</dt><dd id="version">…</dd></div>
</dl>
<p id="no-user" hidden>The service has no user yet. Run <code>gatehouse-server admin setup-link</code> to print the link that creates the first user.</p>
<h2>Log in to a device</h2>
<p><code>ssh <span id="port"></span>&lt;login&gt;@&lt;namespace&gt;.&lt;device&gt;@<span id="host">this-service</span></code></p>
<h2>Manage access</h2>
${
  consoleUrl === undefined
    ? NO_CONSOLE
    : `<p><a href="${consoleUrl}/login">Log in to the console</a></p>
<p>Programs use <a href="docs">the API</a> (<a href="openapi.json">OpenAPI description</a>).</p>
`
}`,
  scripts: ["start"],
  start: "showState",
});

const TOKEN = `<div id="signed-in" data-part hidden>
<p>This service has no web console. Pass this token to a program, for example as
<code>GATEHOUSE_TOKEN</code>. Every person with the token has your permissions until it expires.</p>
<div class="field"><label for="token">Token</label><input id="token" type="password" readonly></div>
<button id="copy" type="button">Copy the token</button>
</div>
`;

/**
 * The page to which the browser returns after a login with an identity provider. If the user opens the page without
 * such a login, the page describes how to log in.
 */
const LOGIN: LinkedPage = {
  path: "/login",
  needs: ["login", "getUserInfo"],
  title: "Log in",
  body: `<div id="how" data-part>${NO_CONSOLE}</div>\n${TOKEN}`,
  scripts: ["login"],
  start: "showLogin",
};

/**
 * The second-factor page. If a user with a second factor logs in with an identity provider, the browser returns to this
 * page.
 */
const SECOND_STEP: LinkedPage = {
  path: "/mfa-login",
  needs: ["authMfa"],
  title: "Enter your second factor",
  body: `${formHtml("second-factor", [codeField(authMfa.body.shape.code)], "Log in")}${TOKEN}`,
  scripts: ["login"],
  start: "completeLogin",
};

/**
 * Returns the pages of an instance that serves the given operations.
 * @param consoleUrl address of the web console that serves the login pages; undefined if there is no console
 */
export function linkedPages(
  served: ReadonlySet<Operation>,
  consoleUrl: string | undefined,
): readonly LinkedPage[] {
  const serves = (ids: readonly OperationId[]) => ids.every((id) => served.has(operations[id]));
  const separatesSignUp = serves(["lookupUserStatus", "acceptInvite", "login", "authMfa", "resendEmail"]);
  const pages = [
    start(consoleUrl),
    SETUP,
    CONFIRM_ACCOUNT,
    CONFIRM_ADDRESS,
    NEW_PASSWORD,
    RESET_MFA,
    ...(consoleUrl === undefined ? [LOGIN, SECOND_STEP] : []),
    invitation(separatesSignUp),
  ];
  return pages.filter(({ needs }) => serves(needs));
}
