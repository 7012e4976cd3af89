/** The cause and the remedy of a failed access to a file, as sentences for users. */
export interface FileFailure {
  /** `Cannot write <path>: <cause>.` */
  readonly detail: string;
  readonly remedy?: string;
}

const PERMISSION = ["permission denied", "Check the permissions of the file and of its folders."] as const;
const FULL = ["the disk or the quota is full", "Free space, or choose another path."] as const;

/** Cause and remedy for each error code of the operating system. */
const FAILURES: Readonly<Record<string, readonly [cause: string, remedy: string]>> = {
  EACCES: PERMISSION,
  EPERM: PERMISSION,
  EROFS: ["the file system is read-only", "Choose another path."],
  ENOTDIR: ["a part of the path is a file, not a folder", "Correct the path."],
  EISDIR: ["it is a folder, not a file", "Give the path of a file."],
  EEXIST: ["a file with this name already exists", "Choose another path."],
  ELOOP: ["its symbolic links form a loop", "Correct the path."],
  ENAMETOOLONG: ["the path is too long", "Choose a shorter path."],
  ENOSPC: FULL,
  EDQUOT: FULL,
  EFBIG: ["the file is too large", "Choose a path on another file system, or raise the file size limit."],
  EMFILE: ["too many files are open", "Raise the limit on open files."],
};

const MISSING = {
  read: ["it does not exist", "Correct the path."],
  write: ["the folder does not exist", "Create it, or choose another path."],
} as const;

/**
 * Describes a failed access to a file or folder.
 * @param file the path of the file, or a description with the path, such as `the TLS key /etc/key.pem
 *   (GATEHOUSE_TLS_KEY_FILE)`
 * @param error the Node.js error
 */
export function fileFailure(action: "read" | "write", file: string, error: unknown): FileFailure {
  const { code = "", message } = error as Partial<NodeJS.ErrnoException>;
  const [cause, remedy] = code === "ENOENT" ? MISSING[action] : (FAILURES[code] ?? []);
  const detail = `Cannot ${action} ${file}: ${cause ?? (message || code || String(error))}.`;
  return remedy === undefined ? { detail } : { detail, remedy };
}

/** Returns the detail and the remedy of {@link fileFailure} as one text. */
export function fileFailureText(action: "read" | "write", file: string, error: unknown): string {
  const { detail, remedy } = fileFailure(action, file, error);
  return remedy === undefined ? detail : `${detail} ${remedy}`;
}
