import { exampleOf } from "../../provider/providers/generate/exampleOf.ts";
import { declarationSection, exportedDeclarations, interfaceSection } from "./exportedDeclarations.ts";

/** Returns the page of the helper functions, generated from their doc comments. */
export function helpersPage(note: string): string {
  const functions = (file: string) =>
    exportedDeclarations(`provider/helpers/${file}.ts`)
      .filter(({ keyword }) => keyword === "function")
      .map((each) => declarationSection(each));
  const interfaces = (file: string) =>
    exportedDeclarations(file).filter(({ keyword }) => keyword === "interface");
  const options = interfaces("provider/service/lookups.ts");
  const tokens = interfaces("provider/helpers/workloads.ts");
  const head = `# Helpers and lookups

\`@gatehouse-access/provider\` exports these functions in addition to the [resources](resources.md).`;
  return [
    note,
    head,
    `\`\`\`ts\n${exampleOf("helpers")}\n\`\`\``,
    "This example is `examples/resources/helpers.ts`. A test runs it.",
    "## Values for inputs",
    ...["patterns", "sshKeyFile", "workloads"].flatMap(functions),
    ...tokens.map((each) => interfaceSection(each, tokens)),
    "## Lookups",
    "Lookups read existing objects while the program runs. They use the settings and the credential of the resources.",
    "Each lookup has a second form for outputs, like Pulumi's own functions: `getDevicesOutput()`, `getNamespaceOutput()` and so on. The second form accepts outputs as arguments and returns an output. It sends its request when the values of all arguments are known. In a preview, some values may stay unknown, and the lookup then sends no request.",
    ...options.map((each) => interfaceSection(each, options)),
    ...functions("lookups"),
  ].join("\n\n");
}
