import { readFileSync } from "node:fs";
import { exampleOf } from "../../provider/providers/generate/exampleOf.ts";

interface Documented {
  readonly name: string;
  readonly signature: string;
  readonly text: string;
}

/** Returns the exported functions and interfaces of a file, with their doc comments. */
function documented(file: string): Documented[] {
  const source = readFileSync(new URL(`../../provider/${file}`, import.meta.url), "utf8");
  const declared =
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?export (?:async )?((?:function|interface) (\w+)[\s\S]*?)(?:\n}\n)/g;
  return [...source.matchAll(declared)].map(([, comment, declaration = "", name = ""]) => {
    if (!comment) throw new Error(`${file}: ${name} has no doc comment`);
    const text = comment
      .replaceAll(/^ *\* ?/gm, "")
      .trim()
      .replace(/\s*@throws /, "\n\nThrows ");
    return { name, signature: signatureOf(declaration), text };
  });
}

/** Returns the declaration of a function without its body, or the complete declaration of an interface. */
function signatureOf(declaration: string): string {
  if (declaration.startsWith("interface")) return `${declaration}\n}`;
  const head = declaration.slice(0, declaration.indexOf(" {\n"));
  return head
    .replaceAll(/\s*\n\s*/g, " ")
    .replace(/\( /, "(")
    .replace(/, \)/, ")");
}

const isInterface = ({ signature }: Documented) => signature.startsWith("interface");

function helperSection({ name, signature, text }: Documented): string {
  return `### ${name}\n\n\`\`\`ts\n${signature}\n\`\`\`\n\n${text}`;
}

/** Returns the page of the helper functions, generated from their doc comments. */
export function helpersPage(note: string): string {
  const head = `# Helpers and lookups

\`@gatehouse-access/provider\` exports these functions in addition to the [resources](resources.md).`;
  return [
    note,
    head,
    `\`\`\`ts\n${exampleOf("helpers")}\n\`\`\``,
    "This example is `examples/resources/helpers.ts`. A test runs it.",
    "## Values for inputs",
    ...[...documented("helpers/patterns.ts"), ...documented("helpers/sshKeyFile.ts")].map(helperSection),
    "## Lookups",
    "Lookups read existing objects while the program runs. They use the settings and the credential of the resources.",
    "Each lookup has a second form for outputs, like Pulumi's own functions: `getDevicesOutput()`, `getNamespaceOutput()` and so on. The second form accepts outputs as arguments and returns an output. It sends its request when the values of all arguments are known. In a preview, some values may stay unknown, and the lookup then sends no request.",
    ...documented("service/lookups.ts").filter(isInterface).map(helperSection),
    ...documented("helpers/lookups.ts").map(helperSection),
  ].join("\n\n");
}
