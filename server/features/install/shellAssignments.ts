/**
 * Lines that give variables of a POSIX shell their values, each in single quotes, in which nothing but a single quote
 * has a meaning: whatever a value holds, the shell takes it as text. NUL, which no shell can hold, must not be in it.
 * @param values by the variables' names, which are the code's own
 */
export function shellAssignments(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join("");
}
