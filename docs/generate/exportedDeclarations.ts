import { readFileSync } from "node:fs";
import ts from "typescript";
import { table } from "./table.ts";

/** An exported declaration, or a member of an exported interface, with its doc comment. */
export interface Documented {
  readonly name: string;
  /** The first word of the declaration: `function`, `interface`, `type` or `const`. */
  readonly keyword: string;
  /** The declaration without the bodies of functions. An overloaded function has a line for each overload. */
  readonly signature: string;
  /** The type of a field; empty for other declarations. */
  readonly type: string;
  readonly optional: boolean;
  readonly text: string;
  readonly parameters: readonly (readonly [name: string, text: string])[];
  readonly errors: readonly string[];
  readonly fallback: string | undefined;
  readonly examples: readonly string[];
  /** The interfaces that an interface extends. */
  readonly parents: readonly string[];
  /** The members of an interface, without those of its parents. */
  readonly members: readonly Documented[];
}

type Declaration =
  | ts.FunctionDeclaration
  | ts.InterfaceDeclaration
  | ts.TypeAliasDeclaration
  | ts.VariableStatement
  | ts.TypeElement;

/**
 * Returns the exported functions, constants, interfaces and types of a source file, with their doc comments.
 * @param file path in the repository
 */
export function exportedDeclarations(file: string): Documented[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  const exported = ts
    .createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    .statements.filter(isDeclaration)
    .filter(({ modifiers = [] }) => modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword));
  const byName = Map.groupBy(exported, nameOf);
  return [...byName.values()].map((overloads) => documented(overloads));
}

const isDeclaration = (node: ts.Statement) =>
  ts.isFunctionDeclaration(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isVariableStatement(node);

function nameOf(node: Declaration): string {
  const named = ts.isVariableStatement(node) ? node.declarationList.declarations[0] : node;
  return named?.name?.getText() ?? "";
}

/** Returns the documentation of a declaration. The last overload is the implementation, which callers cannot use. */
function documented(overloads: readonly Declaration[]): Documented {
  const [node] = overloads as [Declaration];
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  const name = nameOf(node);
  const tags = (tag: string) =>
    (comment?.tags ?? []).filter(({ tagName }) => tagName.text === tag).map((found) => commentText(found));
  const isInterface = ts.isInterfaceDeclaration(node);
  const signatures = overloads.map(signatureOf);
  return {
    name,
    keyword: /^\w+/.exec(signatures[0] ?? "")?.[0] ?? "",
    signature: (overloads.length > 1 ? signatures.slice(0, -1) : signatures).join("\n"),
    type: ts.isPropertySignature(node) ? (node.type?.getText() ?? "") : "",
    optional: ts.isPropertySignature(node) && node.questionToken !== undefined,
    text: comment ? commentText(comment) : "",
    parameters: (comment?.tags ?? []).flatMap((tag) =>
      ts.isJSDocParameterTag(tag) ? [[tag.name.getText(), commentText(tag)] as const] : [],
    ),
    errors: tags("throws"),
    fallback: tags("default")[0],
    examples: tags("example"),
    parents: isInterface
      ? (node.heritageClauses ?? []).flatMap(({ types }) => types.map((type) => type.expression.getText()))
      : [],
    members: isInterface ? node.members.map((member) => documented([member])) : [],
  };
}

const commentText = ({ comment }: ts.JSDoc | ts.JSDocTag): string =>
  (ts.getTextOfJSDocComment(comment) ?? "").replaceAll(/\{@link ([\w.]+)\}/g, "`$1`").trim();

function signatureOf(node: Declaration): string {
  const text = node.getText().replace(/^export (async )?/, "");
  const body = ts.isFunctionDeclaration(node) ? node.body?.getText() : undefined;
  const head = body === undefined ? text : text.slice(0, -body.length);
  if (ts.isInterfaceDeclaration(node)) return head;
  return head
    .replaceAll(/\/\*\*.*?\*\/\s*/gs, "")
    .replaceAll(/\s*\n\s*/g, " ")
    .replace(/\( /, "(")
    .replace(/,? \)/, ")")
    .replace(/;$/, "")
    .trim();
}

/** Returns the text of a doc comment. @throws Error if the declaration has no doc comment */
function requiredText({ name, text }: Documented): string {
  if (text === "") throw new Error(`${name} has no doc comment`);
  return text;
}

const code = (text: string) => `\`\`\`ts\n${text}\n\`\`\``;

/**
 * Returns the section of a declaration: its signature, its doc comment and its examples.
 * @param heading the number signs of the heading
 */
export function declarationSection(declaration: Documented, heading = "###"): string {
  const { name, signature, parameters, errors, examples } = declaration;
  return [
    `${heading} ${name}`,
    code(signature),
    requiredText(declaration),
    ...(parameters.length > 0
      ? [parameters.map(([each, about]) => `- \`${each}\`: ${about}`).join("\n")]
      : []),
    ...errors.map((error) => `Throws ${error}`),
    ...(examples.length > 0 ? [code(examples.join("\n"))] : []),
  ].join("\n\n");
}

/**
 * Returns the section of an interface: its doc comment and a table of its fields, including those of its parents.
 * @param all the interfaces of the page; types link to them
 */
export function interfaceSection(declaration: Documented, all: readonly Documented[]): string {
  const linked = (type: string) => {
    const found = all.find(({ name }) => new RegExp(`\\b${name}\\b`).test(type));
    const text = `\`${type.replaceAll(/\s+/g, " ")}\``;
    return found ? `[${text}](#${found.name.toLowerCase()})` : text;
  };
  const rows = fieldsOf(declaration, all).map((field) => [
    `\`${field.name}${field.optional ? "?" : ""}\``,
    linked(field.type),
    [requiredText(field), ...(field.fallback === undefined ? [] : [`Default: ${field.fallback}`])]
      .join(" ")
      .replaceAll("\n", " "),
  ]);
  return [
    `### ${declaration.name}`,
    requiredText(declaration),
    table(["Field", "Type", "Meaning"], rows),
  ].join("\n\n");
}

const fieldsOf = ({ parents, members }: Documented, all: readonly Documented[]): Documented[] => [
  ...all.filter(({ name }) => parents.includes(name)).flatMap((parent) => fieldsOf(parent, all)),
  ...members,
];
