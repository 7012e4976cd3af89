import type { ErrorKind } from "@gatehouse-access/sdk/errors";

/** The codes of errors that concern a resource. */
export const resourceErrors = {
  unknown_input: {
    cause: "The resource has no input of this name.",
    remedy: "Remove the input, or correct its name.",
  },
  missing_input: { cause: "A required input is missing.", remedy: "Set the input." },
  private_key: {
    cause: "An input for a public key contains a private key. The error and the state do not contain it.",
    remedy:
      "Set the input to the public key, the content of the file `.pub`. If the private key was committed or sent to another machine, replace the key pair.",
  },
  invalid_input: { cause: "The value of an input is invalid.", remedy: "Correct the value." },
  duplicate_declaration: {
    cause: "Two resources of one program declare the same object.",
    remedy: "Remove one of the two resources.",
  },
  already_exists: {
    cause: "The object exists, and the program does not adopt it.",
    remedy: "Set `adopt`, import the object, or delete the object.",
  },
  object_deleted: {
    cause: "The object no longer exists, or the object that contains it no longer exists.",
    remedy: "Refresh the state. The next run then creates the object again.",
  },
  object_not_found: { cause: "No object has this id or name.", remedy: "Check the id or the name." },
  ambiguous_object: { cause: "Several objects have this name.", remedy: "Use the id of the object." },
  invalid_id: {
    cause: "The id does not have the required form.",
    remedy: "Use the format in the error message.",
  },
  changed_out_of_band: {
    cause:
      "Another actor changed the object since the state was written, and the update would revert the change.",
    remedy: "Refresh the state, and review the change. Or declare the live value.",
  },
  unused_tag: {
    cause: "A filter contains a tag that no object in the namespace has.",
    remedy: "Add the tag to a device first, or correct its spelling.",
  },
  unsupported_change: {
    cause: "The service or the engine does not support this change.",
    remedy: "Follow the remedy in the error.",
  },
  unsupported_by_server: {
    cause: "The server's version or edition does not have what the resource needs.",
    remedy:
      "Remove the resource or the input, or use a server that supports it. `gatehouse doctor` lists the features that the server lacks.",
  },
  lockout: {
    cause: "The change would lock out the user or workload that applies it, or the administrators.",
    remedy: "Follow the remedy in the error, or set `allowLockout`.",
  },
  doubtful_answer: {
    cause:
      "A response states that an object does not exist or was deleted, but a proxy may have sent the response, and no list of the service proves it. The state keeps the object.",
    remedy:
      "Check the proxies between the client and the service. The error contains the sender of the response.",
  },
  incomplete_response: {
    cause: "The service's response does not contain data that the resource needs.",
    remedy: "Follow the remedy in the error.",
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** The code of an error that concerns a resource. */
export type ResourceErrorCode = keyof typeof resourceErrors;

/** The codes of errors of commands and engines. */
export const commandErrors = {
  usage: {
    cause: "A flag or an argument is invalid, or contradicts another flag or argument.",
    remedy: "See `--help`.",
  },
  confirmation_required: {
    cause: "The run needs a confirmation of its changes, but has no terminal.",
    remedy: "Set `--yes`, or use a reviewed plan.",
  },
  declined: {
    cause: "The user did not confirm the changes. The run changed nothing.",
    remedy: "Run the command again.",
  },
  service: {
    cause: "No service is configured, or its published data is invalid.",
    remedy: "Set `GATEHOUSE_URL`.",
  },
  no_engine: {
    cause: "There is no `pulumi` command on the PATH.",
    remedy: "Install the Pulumi CLI, or set `--engine embedded` or `GATEHOUSE_ENGINE=embedded`.",
  },
  project: {
    cause: "A file of the project is missing or invalid.",
    remedy: "Correct the file in the error message.",
  },
  stack_selection: {
    cause: "No stack is selected, or the selected stack does not exist.",
    remedy: "Set `--stack`.",
  },
  backend: {
    cause: "The state backend is not set, or one of its files cannot be read or written.",
    remedy: "Correct the file or the setting in the error message.",
  },
  passphrase: {
    cause: "The passphrase of the stack's secrets is missing or incorrect.",
    remedy: "Set `PULUMI_CONFIG_PASSPHRASE`.",
  },
  locked: {
    cause: "Another process has locked the stack.",
    remedy: "Wait until the process finishes. If the process no longer runs, use `pulumi cancel`.",
  },
  journal_conflict: {
    cause: "The journal of a killed run does not match the state.",
    remedy: "Follow the steps in the error.",
  },
  unsupported: {
    cause: "The program or the state uses a feature that the embedded engine does not have.",
    remedy: "Use the Pulumi CLI.",
  },
  target: { cause: "A target matches no resource of the stack.", remedy: "Correct the URN." },
  not_planned: {
    cause: "The program's declarations differ from the declarations in its preview.",
    remedy: "Run the command again.",
  },
  protected: {
    cause: "A protected resource would be deleted or replaced.",
    remedy: "Remove the option `protect` and run `up`.",
  },
  provider: {
    cause: "The provider process did not start.",
    remedy: "See the output of the process in the error message.",
  },
  pulumi_cli: { cause: "The Pulumi CLI failed.", remedy: "See the output of the CLI in the error message." },
  program: {
    cause: "The Pulumi program failed.",
    remedy: "Correct the program at the place in the error message. `--verbose` prints the call stack.",
  },
  failed: {
    cause: "A step failed, or the service's preflight check failed.",
    remedy: "See the failed resources.",
  },
  cancelled: {
    cause: "The run was interrupted. The state contains every completed step.",
    remedy: "Run the command again.",
  },
  plan_file: {
    cause: "A plan file is invalid, its parts contradict each other, or it cannot be read or written.",
    remedy: "Create the plan again, and save it again.",
  },
  plan_outdated: { cause: "The plan differs from the reviewed plan.", remedy: "Review the new plan." },
  policy_tests: { cause: "There are no policy tests.", remedy: "Add a file named `*.policy.ts`." },
  review: { cause: "The review has no namespace to evaluate.", remedy: "Set `GATEHOUSE_TENANT`." },
  access_selector: {
    cause: "A selector of `gatehouse access` or `getAccess` is invalid.",
    remedy: "Correct the flag or the argument in the error message.",
  },
  access_unknown: {
    cause: "Access policies authorize the logins of the namespace, or the namespace cannot be read.",
    remedy: "Remove the call of `getAccess`.",
  },
  import: { cause: "The import cannot be completed.", remedy: "Follow the remedy in the error." },
  packages: { cause: "`npm install` failed.", remedy: "Install the packages of the generated program." },
  repair: { cause: "Some objects could not be deleted.", remedy: "See the reasons in the error." },
  notify: { cause: "The webhook did not accept the message.", remedy: "Check `GATEHOUSE_NOTIFY_URL`." },
  install: {
    cause: "The plugin or the Terraform provider cannot be installed.",
    remedy: "Choose a directory with write permission.",
  },
  git: {
    cause: "Git failed, or the directory is not in a Git repository.",
    remedy: "Follow the remedy in the error.",
  },
  output: { cause: "The output could not be written.", remedy: "Free space on the disk." },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** The code of an error of a command or an engine. */
export type CommandErrorCode = keyof typeof commandErrors;
