import type { Alias } from "@pulumi/pulumi/proto/alias_pb.js";
import type { RegisterResourceRequest } from "@pulumi/pulumi/proto/resource_pb.js";
import { type UnsupportedId, unsupportedUse } from "../../engineDifferences.ts";
import type { UnsupportedUse } from "../../errors.ts";
import type { Writable } from "../../model.ts";
import type { CustomTimeouts } from "../../state/resourceState.ts";
import { isDynamicType, makeUrn, urnName, urnQualifiedType, urnType } from "../../urn.ts";
import { containsAsset, type Props } from "../../value.ts";
import { fromStruct } from "./providerProcess.ts";

/** What a program wants one resource to be. */
export interface Goal {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly custom: boolean;
  readonly parent: string;
  readonly props: Props;
  readonly protect: boolean;
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  readonly deleteBeforeReplace: boolean | undefined;
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly additionalSecretOutputs: readonly string[];
  readonly retainOnDelete: boolean;
  readonly deletedWith: string;
  readonly customTimeouts: CustomTimeouts;
  /** Id of an object that is there already and is to be taken over; empty for none. */
  readonly importId: string;
  /** Former URNs, in the order in which they are looked up. */
  readonly aliases: readonly string[];
}

/** The program that registers: URNs and inherited aliases follow from it. */
export interface Scope {
  readonly stack: string;
  readonly project: string;
  /** The former URN of a resource that was registered before and was found by an alias. */
  aliasOf(urn: string): string | undefined;
}

/** Reads a registration. */
export function readGoal(request: RegisterResourceRequest, scope: Scope): Goal {
  const type = request.getType();
  const name = request.getName();
  const parent = request.getParent();
  const dependencies = request.getPropertydependenciesMap().entries() as Iterable<
    [string, RegisterResourceRequest.PropertyDependencies]
  >;
  return {
    urn: makeUrn(scope.stack, scope.project, parent, type, name),
    type,
    name,
    custom: request.getCustom(),
    parent,
    props: fromStruct(request.getObject()),
    protect: request.getProtect() ?? false,
    dependencies: [...new Set(request.getDependenciesList())].sort(),
    propertyDependencies: Object.fromEntries(
      [...dependencies].map(([key, on]) => [key, [...on.getUrnsList()].sort()]),
    ),
    deleteBeforeReplace: request.getDeletebeforereplacedefined()
      ? request.getDeletebeforereplace()
      : undefined,
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    retainOnDelete: request.getRetainondelete() ?? false,
    deletedWith: request.getDeletedwith(),
    customTimeouts: customTimeouts(request.getCustomtimeouts()),
    importId: request.getImportid(),
    aliases: aliasUrns(request, scope, { type, name, parent }),
  };
}

function customTimeouts(given: RegisterResourceRequest.CustomTimeouts | undefined): CustomTimeouts {
  const timeouts: Writable<CustomTimeouts> = {};
  if (given?.getCreate()) timeouts.create = given.getCreate();
  if (given?.getUpdate()) timeouts.update = given.getUpdate();
  if (given?.getDelete()) timeouts.delete = given.getDelete();
  if (given?.getRead()) timeouts.read = given.getRead();
  return timeouts;
}

type Named = Pick<Goal, "type" | "name" | "parent">;

/** The URNs of the aliases; then, where the parent was found by an alias, those that follow from its former URN. */
function aliasUrns(request: RegisterResourceRequest, scope: Scope, own: Named): string[] {
  const given = [
    ...request.getAliasurnsList(),
    ...request.getAliasesList().map((alias) => aliasUrn(alias, scope, own)),
  ];
  const parentAlias = own.parent === "" ? undefined : scope.aliasOf(own.parent);
  if (!parentAlias) return [...new Set(given)];
  const inherited = (type: string, name: string): string => {
    const parentName = urnName(own.parent);
    // A child whose name begins with its parent's is taken to have changed its name with it.
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
export function unsupportedUses(request: RegisterResourceRequest, goal: Goal): UnsupportedUse[] {
  const found = new Set<UnsupportedId>();
  if (request.getRemote()) found.add("remote-component");
  if (request.getPackageref() !== "") found.add("parameterized-package");
  if (goal.custom) {
    if (goal.type.startsWith("pulumi:providers:")) found.add("explicit-provider");
    else if (goal.type === "pulumi:pulumi:StackReference") found.add("stack-reference");
    else if (!isDynamicType(goal.type)) found.add("package");
  }
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

/** The URNs of all resources that must exist before this one. */
export function goalReferences(goal: Goal): string[] {
  const urns = [goal.parent, goal.deletedWith, ...goal.dependencies];
  return [...new Set([...urns, ...Object.values(goal.propertyDependencies).flat()])].filter(Boolean);
}

function isNested(path: string): boolean {
  return path !== "*" && /[.[\]*"]/.test(path);
}
