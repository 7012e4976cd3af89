import { readFileSync } from "node:fs";
import { ConfigurationError, fileFailure } from "./errors.ts";

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the value of a variable, or the content of the file whose path is in `<name>_FILE`, without the final
 * newline. An empty variable is treated as absent.
 * @throws ConfigurationError when both variables are set, or when the file is empty or cannot be read
 */
export function environmentValue(env: Environment, name: string): string | undefined {
  const fileName = `${name}_FILE`;
  const value = env[name] || undefined;
  const path = env[fileName] || undefined;
  if (value !== undefined && path !== undefined) {
    throw new ConfigurationError(`and ${fileName} are both set`, {
      field: [name],
      remedy: "set only one of them",
    });
  }
  if (path === undefined) return value;
  return contentOf(path, fileName);
}

/**
 * Returns the content of a file without the final newline.
 * @param variable the variable that contains the path, for errors
 * @throws ConfigurationError when the file is empty or cannot be read
 */
export function contentOf(path: string, variable: string): string {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (cause) {
    // If the value is a URL instead of a path, the error omits the value, because a URL may contain a secret.
    const isAddress = /^\w+:\/\//.test(path);
    const { detail, remedy } = fileFailure(
      "read",
      isAddress ? "the file (its path looks like a URL)" : path,
      cause,
    );
    throw new ConfigurationError(detail, {
      field: [variable],
      remedy: isAddress ? "Set it to the path of a file, not to an address." : remedy,
      ...(!isAddress && { cause }),
    });
  }
  const text = content.replace(/\r?\n$/, "");
  if (text === "") {
    throw new ConfigurationError(`The file ${path} is empty`, {
      field: [variable],
      remedy: "write the value to the file, or set another file",
    });
  }
  return text;
}
