import type aliasProto from "@pulumi/pulumi/proto/alias_pb.js";
import type proto from "@pulumi/pulumi/proto/resource_pb.js";
import type { UnsupportedUse } from "../../errors.ts";
import { unsupportedUse } from "../../unsupported.ts";
import { makeUrn, STACK_TYPE, urnName, urnQualifiedType, urnType } from "../../urn.ts";
import { containsAsset, type Props } from "../../value.ts";
import { fromStruct } from "./struct.ts";

/** What a program wants of one resource. */
export type Goal = {
  urn: string;
  type: string;
  name: string;
  custom: boolean;
  parent: string;
  props: Props;
  protect: boolean;
  dependencies: string[];
  propertyDependencies: { [key: string]: string[] };
  deleteBeforeReplace: boolean | undefined;
  ignoreChanges: string[];
  replaceOnChanges: string[];
  additionalSecretOutputs: string[];
  retainOnDelete: boolean;
  deletedWith: string;
  customTimeouts: { create?: string; update?: string; delete?: string; read?: string };
  /** Id of an object that is there already and is to be taken over; empty for none. */
  importId: string;
  /** Former urns, in the order they are looked up. */
  aliases: string[];
};

type Request = InstanceType<typeof proto.RegisterResourceRequest>;
type Alias = InstanceType<typeof aliasProto.Alias>;

/** Where the program runs, and which former urns its resources have had: needed for urns and inherited aliases. */
export type Scope = { stack: string; project: string; aliasOf(urn: string): string | undefined };

/** Reads a registration. */
export function readGoal(request: Request, scope: Scope): Goal {
  const type = request.getType();
  const name = request.getName();
  const parent = request.getParent();
  const timeouts: Goal["customTimeouts"] = {};
  const given = request.getCustomtimeouts();
  if (given?.getCreate()) timeouts.create = given.getCreate();
  if (given?.getUpdate()) timeouts.update = given.getUpdate();
  if (given?.getDelete()) timeouts.delete = given.getDelete();
  if (given?.getRead()) timeouts.read = given.getRead();
  const propertyDependencies: Goal["propertyDependencies"] = {};
  for (const [key, deps] of request.getPropertydependenciesMap().entries() as Iterable<
    [string, InstanceType<typeof proto.RegisterResourceRequest.PropertyDependencies>]
  >) {
    propertyDependencies[key] = [...deps.getUrnsList()].sort();
  }
  return {
    urn: makeUrn(scope.stack, scope.project, parent, type, name),
    type,
    name,
    custom: request.getCustom(),
    parent,
    props: fromStruct(request.getObject()),
    protect: request.getProtect() ?? false,
    dependencies: [...new Set(request.getDependenciesList())].sort(),
    propertyDependencies,
    deleteBeforeReplace: request.getDeletebeforereplacedefined()
      ? request.getDeletebeforereplace()
      : undefined,
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    retainOnDelete: request.getRetainondelete() ?? false,
    deletedWith: request.getDeletedwith(),
    customTimeouts: timeouts,
    importId: request.getImportid(),
    aliases: aliasUrns(request, scope, { type, name, parent }),
  };
}

type Named = { type: string; name: string; parent: string };

/** The former urns an alias gives, then those that follow from a parent that was found by an alias itself. */
function aliasUrns(request: Request, scope: Scope, own: Named): string[] {
  const given = [
    ...request.getAliasurnsList(),
    ...request.getAliasesList().map((alias) => aliasUrn(alias, scope, own)),
  ];
  const parentAlias = own.parent === "" ? undefined : scope.aliasOf(own.parent);
  if (!parentAlias) return [...new Set(given)];
  const inherited = (type: string, name: string): string => {
    const parentName = urnName(own.parent);
    // A child named after its parent is taken to have followed the parent's name.
    const oldName = name.startsWith(parentName) ? urnName(parentAlias) + name.slice(parentName.length) : name;
    return makeUrn(scope.stack, scope.project, parentAlias, type, oldName);
  };
  const followed = given.map((urn) => inherited(urnType(urn), urnName(urn)));
  return [...new Set([...given, inherited(own.type, own.name), ...followed])];
}

function aliasUrn(alias: Alias, scope: Scope, own: Named): string {
  if (alias.hasUrn()) return alias.getUrn();
  const spec = alias.getSpec();
  let parent = own.parent;
  if (spec?.hasParenturn() && spec.getParenturn() !== "") {
    parent = scope.aliasOf(spec.getParenturn()) ?? spec.getParenturn();
  }
  if (spec?.getNoparent()) parent = "";
  return makeUrn(
    spec?.getStack() || scope.stack,
    spec?.getProject() || scope.project,
    parent,
    spec?.getType() || own.type,
    spec?.getName() || own.name,
  );
}

/** Everything in a registration that the engine does not have. */
export function unsupportedUses(request: Request, goal: Goal): UnsupportedUse[] {
  const found = new Set<string>();
  const custom = goal.custom;
  if (request.getRemote()) found.add("remote-component");
  if (request.getPackageref() !== "") found.add("parameterized-package");
  if (custom && goal.type.startsWith("pulumi:providers:")) found.add("explicit-provider");
  else if (custom && goal.type === "pulumi:pulumi:StackReference") found.add("stack-reference");
  else if (custom && !isDynamicType(goal.type)) found.add("package");
  if (request.getProvider() !== "") found.add("explicit-provider");
  if (request.getTransformsList().length > 0) found.add("transforms");
  if (request.getStateMigrationsList().length > 0) found.add("state-migrations");
  if (request.hasReplacementTrigger()) found.add("replacement-trigger");
  if (request.getReplaceWithList().length > 0) found.add("replace-with");
  if (request.getEnvvarmappingsMap().getLength() > 0) found.add("env-var-mappings");
  if (request.hasHooks()) found.add("hooks");
  if ([...goal.ignoreChanges, ...goal.replaceOnChanges].some(isNested)) found.add("nested-paths");
  if (containsAsset(goal.props)) found.add("assets");
  return [...found].map((id) => unsupportedUse(id, `${goal.name} (${urnQualifiedType(goal.urn)})`));
}

/** Every urn a resource needs to exist before it. */
export function goalReferences(goal: Goal): string[] {
  const urns = [goal.parent, goal.deletedWith, ...goal.dependencies];
  return [...new Set([...urns, ...Object.values(goal.propertyDependencies).flat()])].filter(Boolean);
}

/** True for a resource of a dynamic provider. */
export function isDynamicType(type: string): boolean {
  return type.startsWith("pulumi-nodejs:");
}

/** True for the stack's own root resource. */
export function isStack(goal: { type: string }): boolean {
  return goal.type === STACK_TYPE;
}

function isNested(path: string): boolean {
  return path !== "*" && /[.[\]*"]/.test(path);
}
