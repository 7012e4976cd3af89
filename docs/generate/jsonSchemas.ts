import { fileURLToPath } from "node:url";
import {
  createFormatter,
  createParser,
  DEFAULT_CONFIG,
  EnumType,
  type Schema,
  SchemaGenerator,
  type SubNodeParser,
} from "ts-json-schema-generator";
import ts from "typescript";

/** A JSON document that a command prints or sends. */
export interface JsonDocument {
  /** File name of the schema in provider/schemas. The published package contains this folder as `schemas`. */
  readonly file: string;
  /** Name of the document's TypeScript type. */
  readonly type: string;
  /** Path of the module that exports the type, in provider/dist. */
  readonly module: string;
  /** The `gatehouse` command that prints or sends the document. */
  readonly command: string;
}

/** All documented JSON documents. */
export const jsonDocuments: readonly JsonDocument[] = (
  [
    ["review", "Review", "review/report/review", "review --json"],
    ["drift", "PrintedDrift", "drift/driftReport", "drift --json"],
    ["drift-notice", "DriftNotice", "drift/driftNotice", "drift --notify json"],
    ["verify", "Verification", "verify/verification", "verify --json"],
    ["expire", "ExpireReport", "drift/expire", "expire --json"],
    ["coverage", "NamespaceCoverage", "namespace/coverage", "coverage --json"],
    ["policy-tests", "TestedNamespace", "review/testedNamespace", "test --json"],
    ["access", "AccessReport", "access/answer", "access --json"],
    ["access-evidence", "AccessEvidence", "access/evidence", "access --report <file>.json"],
    ["access-explanation", "AccessExplanationReport", "access/answer", "access --explain --json"],
    ["doctor", "Diagnosis", "cli/doctorReport", "doctor --json"],
  ] as const
).map(([name, type, module, command]) => ({
  file: `${name}.schema.json`,
  type,
  module,
  command: `gatehouse ${command}`,
}));

let schemas: ReadonlyMap<string, Schema> | undefined;

/** Returns the JSON Schemas of command output by file name, generated from TypeScript types and their comments. */
export function jsonSchemas(): ReadonlyMap<string, Schema> {
  schemas ??= makeSchemas();
  return schemas;
}

function makeSchemas(): ReadonlyMap<string, Schema> {
  const declarations = (module: string) =>
    fileURLToPath(new URL(`../../provider/dist/${module}.d.ts`, import.meta.url));
  const program = ts.createProgram([...new Set(jsonDocuments.map(({ module }) => declarations(module)))], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2024,
    types: ["node"],
    strict: true,
    skipLibCheck: true,
  });
  // The schemas allow no other fields, since the output of a command has only the fields of its type.
  const config = {
    ...DEFAULT_CONFIG,
    additionalProperties: false,
    topRef: false,
    jsDoc: "extended" as const,
  };
  const parser = createParser(program, config, (chain) => chain.addNodeParser(literals(program)));
  const generator = new SchemaGenerator(program, parser, createFormatter(config), config);
  return new Map(
    jsonDocuments.map(({ file, type }) => [file, withNames(generator.createSchema(type), file, type)]),
  );
}

/**
 * Returns a parser for types that are unions of string literals. If the source lists the literals, the parser keeps
 * their order. If the union is derived from other types, such as a union of roles, the parser sorts the literals
 * alphabetically.
 */
function literals(program: ts.Program): SubNodeParser {
  const checker = program.getTypeChecker();
  const valuesOf = (node: ts.Node): string[] | undefined => {
    if (!ts.isTypeReferenceNode(node) && !ts.isIndexedAccessTypeNode(node)) return undefined;
    const type = checker.getTypeFromTypeNode(node);
    if (!type.isUnion()) return undefined;
    const values = type.types.flatMap((member) => (member.isStringLiteral() ? [member.value] : []));
    if (values.length < type.types.length) return undefined;
    // The literals are sorted, because the compiler's own order depends on the other files that the compiler has read.
    return writtenOrder(type) ?? values.sort();
  };
  return {
    supportsNode: (node) => valuesOf(node) !== undefined,
    createType(node) {
      const values = valuesOf(node) ?? [];
      return new EnumType(`literals-${values.join("-")}`, values);
    },
  };
}

function writtenOrder({ aliasSymbol }: ts.Type): string[] | undefined {
  const [declaration] = aliasSymbol?.declarations ?? [];
  if (!declaration || !ts.isTypeAliasDeclaration(declaration)) return undefined;
  if (!ts.isUnionTypeNode(declaration.type)) return undefined;
  const members = declaration.type.types;
  const values = members.flatMap((member) =>
    ts.isLiteralTypeNode(member) && ts.isStringLiteral(member.literal) ? [member.literal.text] : [],
  );
  return values.length === members.length ? values : undefined;
}

function withNames({ $schema, definitions = {}, ...schema }: Schema, file: string, title: string): Schema {
  const named = Object.entries(definitions).map(([name, definition]) => [
    name,
    typeof definition === "boolean" ? definition : { title: name, ...definition },
  ]);
  const $id = `urn:gatehouse:schema:${file.replace(".schema.json", "")}:1`;
  return { ...($schema && { $schema }), $id, title, ...schema, definitions: Object.fromEntries(named) };
}
