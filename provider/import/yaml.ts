import { Document, Scalar, visit } from "yaml";
import type { Declarable } from "../namespace/liveObjects.ts";
import { accessPolicy } from "../resources/accessPolicy.ts";
import { escaping, printable } from "../words.ts";
import { sharedValues, withShared } from "./declarations.ts";
import { Code, characterEscape } from "./literal.ts";
import {
  type KindOfProgram,
  namedByKind,
  type ProgramFile,
  type ProgramOptions,
  uniqueNames,
  withNamespaceLast,
  withSubject,
} from "./model.ts";

/**
 * Returns a YAML program for the plugin. The program is always a single file, since YAML programs cannot read other
 * files.
 */
export function yamlFiles(
  kinds: readonly KindOfProgram[],
  added: readonly KindOfProgram[],
  { project, namespace, service, adopt }: ProgramOptions,
): ProgramFile[] {
  const objects = kinds.flatMap((kind) => kind.objects.map((object) => ({ ...object, kind })));
  const shared = sharedValues(objects.map(({ inputs }) => inputs));
  // In a YAML program, a variable and a resource must not have the same name.
  const uniqueKey = uniqueNames({ taken: [...shared.values()].map(({ name }) => name) });
  const resources = objects.map(({ kind, resource, inputs }) => {
    const properties = withShared(inputs, shared, ({ name }) => new Code(`\${${name}}`));
    return entryOf(kind.kind, resource, { ...properties, ...(adopt && { adopt }) }, uniqueKey);
  });
  const accountIds = new Map<string, Code>();
  const created = added.map(({ kind, objects: own }) =>
    own.map((object) => {
      const keyWith = (key: string) =>
        uniqueKey(`${key}-${kind === accessPolicy.definition.name ? "policy" : "account"}`);
      const entry = entryOf(kind, object.resource, withSubject(object, accountIds).inputs, keyWith);
      accountIds.set(object.id, new Code(`\${${entry[0]}.accountId}`));
      return entry;
    }),
  );
  const dependsOn = created.at(-1)?.map(([key]) => `\${${key}}`);
  const options = withNamespaceLast(kinds, dependsOn).flatMap((kind) => kind.objects.map(() => kind.options));
  const declared = resources.map(([key, entry], index) => [
    key,
    { ...entry, ...(options[index] && { options: options[index] }) },
  ]);
  const variables = [...shared.values()].map(({ name, value }) => [name, literalText(value)]);
  const program = {
    name: project,
    description: `Device access in ${printable(namespace)} on ${printable(service)}`,
    runtime: "yaml",
    ...(variables.length > 0 && { variables: Object.fromEntries(variables) }),
    resources: Object.fromEntries([...declared, ...created.flat()]),
  };
  return [{ path: "Pulumi.yaml", text: yamlText(program) }];
}

/** Returns the entries that declare objects with `adopt: true`, for the section `resources` of an existing program. */
export function yamlAdoptions(
  objects: readonly Declarable[],
  namesOf: (kind?: string) => Iterable<string>,
): string {
  const uniqueKey = uniqueNames({ taken: namesOf() });
  const entries = namedByKind(objects, namesOf).map(({ definition, resource, inputs }) =>
    entryOf(definition.name, resource, { ...inputs, adopt: true }, uniqueKey),
  );
  return entries.length === 0 ? "" : yamlText(Object.fromEntries(entries)).trimEnd();
}

function entryOf(
  kind: string,
  resource: string,
  inputs: object,
  uniqueKey: (key: string) => string,
): [key: string, entry: object] {
  const key = uniqueKey(keyOf(resource));
  const name = key === resource ? {} : { name: literalText(resource) };
  return [key, { type: `gatehouse:${kind}`, ...name, properties: literalText(inputs) }];
}

/**
 * Returns a value as the content of a YAML file. Characters that can hide or reorder text in an editor are escaped.
 */
export function yamlText(value: unknown): string {
  const document = new Document(value);
  visit(document, {
    Scalar(_key, scalar) {
      if (typeof scalar.value !== "string") return;
      const text = scalar.value.toWellFormed();
      scalar.value = text;
      // Only double-quoted scalars support escape sequences.
      if (escaping(text, () => "") !== text) scalar.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // These options prevent line folding in long strings and in strings with several lines.
  const text = document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER });
  return text
    .split("\n")
    .map((line) => escaping(line, characterEscape))
    .join("\n");
}

/** Replaces `$` by `$$` in all strings of a value, so that Pulumi does not interpret any of them as a reference. */
export function literalText(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(/\$(?=[${])/g, "$$$$");
  if (value instanceof Code) return value.text;
  if (Array.isArray(value)) return value.map(literalText);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, literalText(member)]));
}

const keyOf = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9_-]+/g, "-").replace(/^[^A-Za-z_]+/, "") || "resource";
