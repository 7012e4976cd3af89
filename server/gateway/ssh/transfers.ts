/** A client's request to run a program on the device. */
export type ProgramRequest =
  | { readonly request: "shell" }
  | { readonly request: "exec"; readonly command: string }
  | { readonly request: "subsystem"; readonly name: string };

/** A file transfer. The session's events record the size of a transfer but not its content. */
export interface Transfer {
  readonly program: string;
  /** The direction, as seen from the client. */
  readonly direction: "upload" | "download" | "both";
}

/**
 * Characters with which a shell command can run several programs or a different program. The gateway records commands
 * with these characters, because they may do more than transfer files.
 */
const SHELL_SYNTAX = /[;&|<>()$`\n\r]/;

/**
 * The scp options that the remote end of a copy may have. Any other option could run a program, or use the next word as
 * its value.
 */
const SCP_OPTION = /^-[dfpqrtv]+$/;

/**
 * Returns the file transfer that a request starts. Returns undefined if the request may do anything other than a file
 * transfer.
 */
export function transferOf(request: ProgramRequest): Transfer | undefined {
  if (request.request === "shell") return undefined;
  if (request.request === "subsystem") return { program: request.name, direction: "both" };
  if (SHELL_SYNTAX.test(request.command)) return undefined;
  const [path = "", ...words] = request.command.trim().split(/\s+/);
  const program = path.slice(path.lastIndexOf("/") + 1);
  const firstName = words.findIndex((word) => !SCP_OPTION.test(word));
  const options = words.slice(0, firstName === -1 ? undefined : firstName).join("");
  switch (program) {
    case "scp":
      if (words[firstName]?.startsWith("-") && words[firstName] !== "--") return undefined;
      if (options.includes("t")) return { program, direction: "upload" };
      return options.includes("f") ? { program, direction: "download" } : undefined;
    case "rsync":
      if (words[0] !== "--server" || words.includes("--daemon")) return undefined;
      return { program, direction: words[1] === "--sender" ? "download" : "upload" };
    case "sftp-server":
      return words.length === 0 ? { program, direction: "both" } : undefined;
    case "git-upload-pack":
    case "git-upload-archive":
    case "git-receive-pack":
      if (words.some((word) => word.startsWith("-"))) return undefined;
      return { program, direction: program === "git-receive-pack" ? "upload" : "download" };
    default:
      return undefined;
  }
}
