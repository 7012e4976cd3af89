import { isDeepStrictEqual } from "node:util";
import { selectObject } from "../../lifecycle/selectObject.ts";
import { jsonSchema, type Schema } from "../../model/jsonSchema.ts";
import accessSchema from "../../schemas/access.schema.json" with { type: "json" };
import type { Connection } from "../../service/connection.ts";
import { lookupSchema, readOnly } from "../../terraform/attributes.ts";
import {
  describedInTerraform,
  type Member,
  memberOf,
  type Row,
  rowOf,
  STRING,
  typeConstraint,
  typeNameOf,
  typeOf,
  valuesOf,
} from "../../terraform/types.ts";
import { callFunction, functions, type PluginFunction, resultSchema } from "../functions.ts";
import { attributePath, type Diagnostic, errorAt, errorDiagnostic } from "./diagnostics.ts";
import type { TerraformResource } from "./resource.ts";

/** A data source. */
export interface DataSource {
  readonly typeName: string;
  readonly description: string;
  readonly args: readonly Member[];
  readonly results: readonly Member[];
  /**
   * Reads the data source.
   * @returns the row, or the errors
   */
  read(service: () => Connection, config: Row): Promise<Row | readonly Diagnostic[]>;
}

/**
 * Returns the schema of a data source. If an argument has the same name as a result attribute, it is optional and
 * computed: the provider sets its value if the user omits it.
 */
export function dataSourceSchema({ description, args, results }: DataSource): object {
  const isResult = ({ name }: Member) => results.some((result) => result.name === name);
  const isArgument = ({ name }: Member) => args.some((arg) => arg.name === name);
  return lookupSchema(
    description,
    args.map((arg) => ({ ...arg, computed: isResult(arg) })),
    results.filter((result) => !isArgument(result)),
  );
}

/**
 * Returns all data sources. Each function of the plugin becomes a data source. Each resource type also becomes a data
 * source, which returns a single object, unless a function already uses the name.
 */
export function dataSourcesOf(resources: readonly TerraformResource[]): DataSource[] {
  const lookups = functions.map(ofFunction);
  const isTaken = (name: string) => lookups.some(({ typeName }) => typeName === name);
  return [...lookups, ...resources.filter(({ typeName }) => !isTaken(typeName)).map(ofResource)];
}

/** Returns the data source for a function: `getDevices` becomes `gatehouse_devices`. */
function ofFunction(called: PluginFunction): DataSource {
  const { name, description, args } = called;
  const given = typeOf(jsonSchema(args));
  const answered = typeOf(resultSchema(called, () => accessSchema as unknown as Schema));
  const results = answered.kind === "object" ? answered.members : [];
  const members = (given.kind === "object" ? given.members : []).map((arg) => withUniqueName(arg, results));
  return {
    typeName: typeNameOf({ name: name.replace(/^get/, "") }),
    description: describedInTerraform(description),
    args: members,
    results,
    async read(service, config) {
      const { failures, result } = await callFunction(called, service, valuesOf(members, config));
      if (failures.length === 0) return withGiven(rowOf(results, result), members, config);
      return failures.map(({ path: [first = "", ...inside], reason }) => {
        const arg = members.find((member) => member.property === first)?.name ?? first;
        return errorAt([arg], `Invalid ${arg}`, `${[arg, ...inside].join(".")} ${reason}.`);
      });
    },
  };
}

/** Adds the prefix `only_` to the name of an argument if a result attribute has the same name but a different type. */
function withUniqueName(arg: Member, results: readonly Member[]): Member {
  const result = results.find(({ name }) => name === arg.name);
  const isOther = result && !isDeepStrictEqual(typeConstraint(result.type), typeConstraint(arg.type));
  return isOther ? { ...arg, name: `only_${arg.name}` } : arg;
}

const SELECTOR = memberOf(
  "selector",
  "The object to read: its ID, its ID without the namespace, or its name.",
  STRING,
  true,
);

function ofResource(resource: TerraformResource): DataSource {
  const { definition, typeName, attributes } = resource;
  return {
    typeName,
    description: `Reads an existing object. ${describedInTerraform(definition.description)}`,
    args: [SELECTOR],
    results: attributes
      .filter(({ role }) => role === "id" || role === "input" || role === "output")
      .map((member) => ({ ...readOnly(member), required: false })),
    async read(service, config) {
      try {
        const found = await selectObject(definition, service(), String(config.selector));
        const row = resource.row(found, {});
        return {
          selector: config.selector,
          ...Object.fromEntries(this.results.map(({ name }) => [name, row[name]])),
        };
      } catch (error) {
        const diagnostic = errorDiagnostic(definition, error, "could not be read");
        return [{ ...diagnostic, attribute: attributePath("selector") }];
      }
    },
  };
}

/**
 * Adds the arguments of a data source to the row that the provider read. A configured argument keeps its configured
 * value. An omitted argument gets the value from the row.
 */
const withGiven = (row: Row, args: readonly Member[], config: Row): Row => ({
  ...row,
  ...Object.fromEntries(args.map(({ name }) => [name, config[name] ?? row[name] ?? null])),
});
