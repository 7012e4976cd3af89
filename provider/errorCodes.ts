import type { ErrorKind } from "@gatehouse-access/sdk/errors";

/** The codes of errors that concern a resource. */
export const resourceErrors = {
  unknown_input: {
    cause: "The resource has no input of this name.",
    remedy: "Remove it, or correct its name.",
  },
  missing_input: { cause: "A required input is missing.", remedy: "Set the input." },
  invalid_input: { cause: "The value of an input is wrong.", remedy: "Correct the value." },
  duplicate_declaration: {
    cause: "Two resources of one program declare the same object.",
    remedy: "Remove one of the two.",
  },
  already_exists: {
    cause: "The object exists, and the program does not adopt it.",
    remedy: "Set `adopt`, import the object, or delete it.",
  },
  object_deleted: {
    cause: "The object, or the object that it belongs to, no longer exists.",
    remedy: "Refresh the state, so that the next run creates it again.",
  },
  object_not_found: { cause: "No object has this id or name.", remedy: "Check the id, or the name." },
  ambiguous_object: { cause: "Several objects have this name.", remedy: "Use the id of one of them." },
  invalid_id: {
    cause: "The form of the id is wrong.",
    remedy: "Use the form of the id that the error shows.",
  },
  unused_tag: {
    cause: "A filter contains a tag that no object in the namespace has.",
    remedy: "Add the tag to a device first, or correct its spelling.",
  },
  unsupported_change: {
    cause: "The service, or the engine, does not support this change.",
    remedy: "Follow the remedy in the error.",
  },
  incomplete_response: {
    cause: "The service's answer lacks data that the resource needs.",
    remedy: "Follow the remedy in the error.",
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** The code of an error that concerns a resource. */
export type ResourceErrorCode = keyof typeof resourceErrors;

/** The codes of errors of commands and engines. */
export const commandErrors = {
  usage: { cause: "A flag or an argument is wrong, or contradicts another one.", remedy: "See `--help`." },
  confirmation_required: {
    cause: "The run makes changes and needs a confirmation, but there is no terminal.",
    remedy: "Set `--yes`, or use a reviewed plan.",
  },
  declined: { cause: "The user did not confirm. Nothing was changed.", remedy: "Run the command again." },
  service: {
    cause: "No service is configured, or its published data is invalid.",
    remedy: "Set `GATEHOUSE_URL`.",
  },
  no_engine: {
    cause: "There is no `pulumi` command on the PATH.",
    remedy: "Install the Pulumi CLI, or set `--engine embedded`.",
  },
  project: {
    cause: "A file of the project is missing or wrong.",
    remedy: "Correct the file in the error message.",
  },
  stack_selection: { cause: "No stack is selected, or it does not exist.", remedy: "Set `--stack`." },
  backend: {
    cause: "The state backend is not set, or one of its files cannot be read or written.",
    remedy: "Correct the file or the setting in the error message.",
  },
  passphrase: {
    cause: "The passphrase of the stack's secrets is missing or wrong.",
    remedy: "Set `PULUMI_CONFIG_PASSPHRASE`.",
  },
  locked: {
    cause: "Another process has locked the stack.",
    remedy: "Wait until it finishes. If it no longer runs, use `pulumi cancel`.",
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
    cause: "The program's declarations differ from those in its preview.",
    remedy: "Run the command again.",
  },
  protected: {
    cause: "A protected resource would be deleted or replaced.",
    remedy: "Remove the option `protect` and run `up`.",
  },
  provider: { cause: "The provider process did not start.", remedy: "See its output in the error." },
  pulumi_cli: { cause: "The Pulumi CLI failed.", remedy: "See its output in the error." },
  program: { cause: "The Pulumi program failed.", remedy: "See its output in the error." },
  failed: {
    cause: "A step failed, or the service would refuse the plan.",
    remedy: "See the failed resources.",
  },
  cancelled: {
    cause: "The run was interrupted. The state holds every finished step.",
    remedy: "Run the command again.",
  },
  plan_file: { cause: "A plan file cannot be used.", remedy: "Write the plan again." },
  plan_outdated: { cause: "The plan differs from the reviewed one.", remedy: "Review it again." },
  policy_tests: { cause: "There are no policy tests.", remedy: "Add a file named `*.policy.ts`." },
  review: { cause: "The review covers no namespace.", remedy: "Set `GATEHOUSE_TENANT`." },
  access_selector: {
    cause: "A selector of `gatehouse access` or `getAccess` is wrong.",
    remedy: "Correct the flag or the argument in the error message.",
  },
  import: { cause: "The import cannot be completed.", remedy: "Follow the remedy in the error." },
  packages: { cause: "`npm install` failed.", remedy: "Install the packages of the generated program." },
  repair: { cause: "Some objects could not be deleted.", remedy: "See the reasons in the error." },
  notify: { cause: "The webhook did not accept the message.", remedy: "Check `GATEHOUSE_NOTIFY_URL`." },
  install: {
    cause: "The plugin, or the Terraform provider, cannot be installed.",
    remedy: "Choose a folder with write permission.",
  },
  git: { cause: "git failed, or the folder is in no repository.", remedy: "Follow the remedy in the error." },
  output: { cause: "The output could not be written.", remedy: "Free space on the disk." },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** The code of an error of a command or an engine. */
export type CommandErrorCode = keyof typeof commandErrors;
