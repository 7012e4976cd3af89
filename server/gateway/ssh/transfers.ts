/** What a client requests of the device. */
export type Request =
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

/** The transfer that a request begins; undefined: it is none, or not certainly one. */
export function transferOf(request: Request): Transfer | undefined {
  if (request.request === "shell") return undefined;
  if (request.request === "subsystem") return { program: request.name, direction: "both" };
  if (SHELL_SYNTAX.test(request.command)) return undefined;
  const [path = "", ...words] = request.command.trim().split(/\s+/);
  const program = path.slice(path.lastIndexOf("/") + 1);
  const options = words.filter((word) => word.startsWith("-"));
  const has = (letter: string) =>
    options.some((option) => /^-[a-z]+$/i.test(option) && option.includes(letter));
  switch (program) {
    case "scp":
      if (has("t")) return { program, direction: "upload" };
      return has("f") ? { program, direction: "download" } : undefined;
    case "rsync":
      if (words[0] !== "--server") return undefined;
      return { program, direction: words[1] === "--sender" ? "download" : "upload" };
    case "sftp-server":
      return { program, direction: "both" };
    case "git-upload-pack":
    case "git-upload-archive":
      return { program, direction: "download" };
    case "git-receive-pack":
      return { program, direction: "upload" };
    default:
      return undefined;
  }
}
