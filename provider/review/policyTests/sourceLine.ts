import { pathToFileURL } from "node:url";

/** The topmost line of a stack that is in the file; undefined where none is. */
export function lineIn(stack: string | undefined, file: string): number | undefined {
  // Modules are named by their URL, CommonJS modules and files that cannot be parsed by their path.
  const names = [`${pathToFileURL(file).href}:`, `${file}:`];
  for (const text of (stack ?? "").split("\n")) {
    for (const name of names) {
      const at = text.indexOf(name);
      const line = at < 0 ? Number.NaN : Number.parseInt(text.slice(at + name.length), 10);
      if (line > 0) return line;
    }
  }
  return undefined;
}

/** Where a stack says that a file could not be parsed, as path and line: it stands before all else. */
export function unparsedPlace(stack: string | undefined): string | undefined {
  const [head = ""] = (stack ?? "").split("\n");
  return /:[0-9]+$/.test(head) && /^(file:|\/|[A-Z]:\\)/.test(head) ? head : undefined;
}
