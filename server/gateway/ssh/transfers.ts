/** A client's request to run something on the device. */
export type ProgramRequest =
  | { readonly request: "shell" }
  | { readonly request: "exec"; readonly command: string }
  | { readonly request: "subsystem"; readonly name: string };

/** A transfer of files, of which a session shows the size and not the content. */
export interface Transfer {
  readonly program: string;
  /** Seen from the client. */
  readonly direction: "upload" | "download" | "both";
}

/**
 * Characters by which a shell runs more than one program, or another one. What comes after them is not a transfer, so
 * such a command is recorded.
 */
const SHELL_SYNTAX = /[;&|<>()$`\n\r]/;

/** The options of scp at the other end of a copy. Others run programs, or take the next word as their value. */
const SCP_OPTION = /^-[dfpqrtv]+$/;

/** The transfer that a request begins; undefined: it is none, or not certainly one. */
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
