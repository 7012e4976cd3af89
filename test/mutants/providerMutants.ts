// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts of mutants are parts of the sources

import { type Mutant, mutantsOf } from "./mutant.ts";

const LOCKOUTS = "test/review/guards/lockouts.test.ts";
const PERMISSIONS = "test/review/guards/missingPermissions.test.ts";
const PROBLEMS = "test/review/guards/planProblems.test.ts";
const REPAIR = "test/review/guards/repair.test.ts";
const EXPIRE = "test/review/guards/expire.test.ts";
const SAVED = "test/review/guards/savedPlan.test.ts";
const POLICY_TESTS = "test/review/guards/policyTests.test.ts";
const CLAIMS = "test/provider/claims.test.ts";
const ADOPTION = "test/provider/adoptionGuards.test.ts";
const ON_SERVICE = "test/review/onService.test.ts";

/** The guards of the provider: reviews, repairs, expired objects, policy tests, and the adoption of objects. */
export const providerMutants: readonly Mutant[] = [
  ...mutantsOf(
    "provider/review/guards/lockouts.ts",
    [LOCKOUTS],
    [
      {
        guard: "An invited administrator cannot revert a change.",
        find: 'status === "accepted" && roleAtLeast(role, "administrator")',
        replace: 'roleAtLeast(role, "administrator")',
      },
      {
        guard: "An operator cannot revert a change.",
        find: 'roleAtLeast(role, "administrator")',
        replace: 'roleAtLeast(role, "operator")',
      },
      {
        guard: "The owner does not count as a remaining administrator.",
        find: 'seats.filter(({ role }) => role !== "owner")',
        replace: "seats.filter(() => true)",
      },
      {
        guard: "The loss of the last administrator blocks.",
        find: "!isOwner && others(administrators(before)).length > 0 && others(left).length === 0",
        replace: "false",
      },
      {
        guard: "Only the owner may apply the loss of all other administrators.",
        find: 'const isOwner = own(before)?.role === "owner";',
        replace: "const isOwner = own(before) !== undefined;",
      },
      {
        guard: "The user who applies a change keeps the administrator role.",
        find: "if (was && !is) {",
        replace: "if (was && !own(after)) {",
      },
      {
        guard: "The user who applies a change stays a member.",
        find: "if (was && !is) {",
        replace: "if (was && !is && own(after)) {",
      },
      {
        guard: "The running workload keeps its role.",
        find: "workload && [workload.role, workload.issuer, workload.audience, workload.claims];",
        replace: "workload && [workload.issuer, workload.audience, workload.claims];",
      },
      {
        guard: "The running workload keeps its issuer.",
        find: "workload && [workload.role, workload.issuer, workload.audience, workload.claims];",
        replace: "workload && [workload.role, workload.audience, workload.claims];",
      },
      {
        guard: "The running workload keeps its audience.",
        find: "workload && [workload.role, workload.issuer, workload.audience, workload.claims];",
        replace: "workload && [workload.role, workload.issuer, workload.claims];",
      },
      {
        guard: "The running workload keeps its claims.",
        find: "workload && [workload.role, workload.issuer, workload.audience, workload.claims];",
        replace: "workload && [workload.role, workload.issuer, workload.audience];",
      },
      {
        guard: "The running workload is not deleted.",
        find: "if (!was || isDeepStrictEqual(rulesOf(was), rulesOf(is))) return [];",
        replace: "if (!was || !is || isDeepStrictEqual(rulesOf(was), rulesOf(is))) return [];",
      },
      {
        guard: "Protected devices stay reachable.",
        find: "const lost = groups.length === 0 ? [] : unreachable(before, after);",
        replace: "const lost: AccessDevice[] = [];",
      },
      {
        guard: "A group of protected devices contains the devices of its tag.",
        find: '(kind !== "name" && tags.includes(word))',
        replace: "false",
      },
      {
        guard: "The last access policy of a namespace is not deleted (no-access-policy).",
        find: 'return isLast ? [{ code: "no-access-policy", message }] : [];',
        replace: "return [];",
      },
      {
        guard: "no-access-policy concerns only namespaces that admitted a login.",
        find: "&& !before.reached().isEmpty();",
        replace: ";",
      },
    ],
  ),
  ...[
    ["member", 'create: ["inviteMember"], update: ["updateMember"], delete: ["removeMember"]'],
    [
      "accessPolicy",
      'create: ["createAccessPolicy"],\n    update: ["updateAccessPolicy"],\n    delete: ["deleteAccessPolicy"],',
    ],
    [
      "installKey",
      'create: ["createInstallKey"],\n    update: ["updateInstallKey"],\n    delete: ["updateInstallKey"],',
    ],
    ["tag", 'create: [], update: ["renameTag"], delete: []'],
    [
      "deviceTagAttachment",
      'create: ["createDeviceTag"], update: ["createDeviceTag"], delete: ["deleteDeviceTag"]',
    ],
  ].flatMap(([page = "", find = ""]) =>
    mutantsOf(
      `provider/kinds/${page}.ts`,
      [PERMISSIONS],
      [
        {
          guard: `The operations of ${page} need their permissions.`,
          find,
          replace: "create: [], update: [], delete: []",
        },
      ],
    ),
  ),
  ...(
    [
      [
        "trustedWorkload",
        "A repair keeps the workload that runs it.",
        "idWithin(object) === workloadId ?",
        'workloadId === "" ?',
      ],
      ["member", "A repair keeps the user who runs it.", "idWithin(object) === userId ?", 'userId === "" ?'],
      [
        "apiKey",
        "A repair with an API key keeps every API key.",
        'credential === "apiKey"\n        ?',
        'credential === "anonymous"\n        ?',
      ],
      [
        "accessPolicy",
        "A repair keeps the last access policies.",
        "isClosed ?",
        "isClosed && _object.name === _object.id ?",
      ],
    ] as const
  ).flatMap(([page, guard, find, replace]) =>
    mutantsOf(`provider/kinds/${page}.ts`, [REPAIR], [{ guard, find, replace }]),
  ),
  ...mutantsOf(
    "provider/review/guards/planProblems.ts",
    [PERMISSIONS],
    [
      {
        guard: "A user needs the role of the operation.",
        find: "minRole !== null && role !== undefined && !roleAtLeast(role, minRole)",
        replace: "false",
      },
      {
        guard: "An API key may call only the operations that accept API keys.",
        find: 'if (kind === "apikey" && !auth.includes("apikey")) {',
        replace: 'if (kind === "apikey" && auth.length === 0) {',
      },
      {
        guard: "A workload may call only the operations that accept workloads.",
        find: 'if (kind === "workload" && !takesWorkload(operation)) {',
        replace: 'if (kind === "workload" && auth.length === 0) {',
      },
      {
        guard: "A workload has the role of its session.",
        find: 'if (workload) return { kind: "workload", role: workload.role };',
        replace: 'if (workload) return { kind: "workload", role: undefined };',
      },
    ],
  ),
  ...mutantsOf(
    "provider/review/guards/planProblems.ts",
    ["test/review/changes.test.ts"],
    [
      {
        guard: "A replacement also needs the permission to delete.",
        find: 'op === "replace" ? ["create", "delete"] : [op]',
        replace: 'op === "replace" ? ["create"] : [op]',
      },
      {
        guard: "A removed Device resource removes its device only if onDestroy is remove.",
        find: 'if (definition === definitionsByName.Device && before?.outputs.onDestroy !== "remove") return false;',
        replace: "",
      },
    ],
  ),
  ...mutantsOf(
    "provider/review/guards/planProblems.ts",
    [PROBLEMS],
    [
      {
        guard: "A plan accepts no device beyond the quota of the namespace.",
        find: "if (added <= free) return [];",
        replace: "if (added <= maxDevices) return [];",
        name: "the quota of devices",
      },
      {
        guard: "A machine that enrolled again needs no quota.",
        find: 'device && device.status !== "accepted" && taken[index]?.status !== "accepted"',
        replace: 'device && device.status !== "accepted"',
        name: "the quota of devices",
      },
      {
        guard: "A plan creates no namespace beyond the quota of the user.",
        find: "if (owned.length + added.length <= maxNamespaces) return [];",
        replace: "if (added.length <= maxNamespaces) return [];",
        name: "the quota of namespaces",
      },
      {
        guard: "The quota of namespaces counts only own namespaces.",
        find: ".filter(({ owner }) => owner === userId)",
        replace: "",
        name: "the quota of namespaces",
      },
      {
        guard: "A new resource needs its device.",
        find: "if (given.has(selector) || (await devices.find(deviceKey(selector)))) return [];",
        replace: "if (given.has(selector) || devices) return [];",
        name: "missing device",
      },
      {
        guard: "A filter needs its tags.",
        find: ".filter(({ tag }) => !known.has(tag))",
        replace: ".filter(() => false)",
        name: "missing tag",
      },
      {
        guard: "A resource needs an existing namespace.",
        find: 'if (lost.length > 0) add("namespace", [`${listed(lost)}: ${namespace}`]);',
        replace: "",
        name: "missing namespace",
      },
      {
        guard: "A resource needs a namespace.",
        find: 'if (homeless.length > 0) add("namespace"',
        replace: 'if (homeless.length > 99) add("namespace"',
        name: "without a namespace",
      },
      {
        guard: "A plan creates no object that exists already.",
        find: "if (!existing || held.has(existing.id)) return [];",
        replace: "if (existing || held.size > 0) return [];",
        name: "existing object",
      },
      {
        guard:
          "Only an object that an earlier run created for the same resource of the same stack may exist.",
        find: "owner?.project === project && owner.stack === stack && owner.resource === name",
        replace: "owner?.project === project",
        name: "earlier run",
      },
      {
        guard: "An existing object is found among many new objects.",
        find: "return group.filter(({ inputs }) => claimsOf(inputs).some((key) => claimed.has(key)));",
        replace: "return group.filter(() => claimed.has(first.tenant as string));",
        name: "among many new objects",
      },
      {
        guard: "An update reverts no change that another actor made.",
        find: "return error ? [`${title}: ${error.message}`] : [];",
        replace: "return [];",
        name: "out of band",
      },
      {
        guard: "An allow rule and a deny rule have different priorities.",
        find: 'return changed.some(({ action, priority }) => (action === "deny" ? allows : denies).has(priority));',
        replace: "return allows.size < 0 && denies.size < 0;",
        name: "contradictory rules",
      },
      {
        guard: "A plan needs the permissions of its operations.",
        find: "const refused = missingPermissions(actor, sure, ofNew);",
        replace: "const refused = missingPermissions({ ...actor, role: undefined }, sure, ofNew);",
        name: "missing permissions",
      },
    ],
  ),
  ...mutantsOf(
    "provider/review/guards/planProblems.ts",
    ["test/review/patternCosts.test.ts"],
    [
      {
        guard: "The patterns of firewall rules have a maximum cost.",
        find: "if (cost <= FIREWALL_PATTERNS_MAX || cost <= costOf(live)) return [];",
        replace: "if (cost > 0) return [];",
      },
    ],
  ),
  ...mutantsOf(
    "provider/drift/repair.ts",
    [REPAIR],
    [
      {
        guard: "A repair keeps objects that this stack declared earlier.",
        find: "if (declarer && isSameStack(declarer, repairer) && !repairer.deletesForgotten)",
        replace: 'if (declarer && isSameStack(declarer, repairer) && kind === "anonymous")',
      },
      {
        guard: "A repair keeps objects of other stacks.",
        find: "return foreign(declarer, repairer) ?? foreign(object.declaredBy, repairer);",
        replace: "return undefined;",
      },
      {
        guard: "A repair reverts no object that another stack declared last.",
        find: "return foreign(resource.declaredBy, repairer);",
        replace: "return undefined;",
      },
      {
        guard: "A repair reverts no resource that the program changes.",
        find: "if (changed.has(resource.urn))",
        replace: "if (changed.has(`${resource.urn} `))",
      },
      {
        guard: "--adopt-from allows the change only of the listed stacks.",
        find: "if (adoptFrom.includes(whole) || (owner.project === project && adoptFrom.includes(owner.stack)))",
        replace: "if (adoptFrom.length > 0)",
      },
      {
        guard: "The name of a stack in --adopt-from refers to the same project.",
        find: "(owner.project === project && adoptFrom.includes(owner.stack))",
        replace: "(project !== whole && adoptFrom.includes(owner.stack))",
      },
      {
        guard: "The declarer is unknown on a server that records no declarations.",
        find: "if (!isRecorded || !whole) unknown.push(object);",
        replace: "if (!whole) unknown.push(object);",
      },
      {
        guard: "The declarer of a device's tag is unknown if the audit trail has no entry of the tag.",
        find: "if (added === undefined) unknown.push(object);",
        replace: "if (added === undefined) known.push({ object, declaredBy: undefined });",
      },
      {
        guard: "An object that is no longer due is not deleted.",
        find: "if (!(await isDue(object))) continue;",
        replace: "await isDue(object);",
      },
      {
        guard: "A failed deletion is reported.",
        find: "if (failures.length > 0) {",
        replace: "if (failures.length > 99) {",
      },
    ],
  ),
  ...mutantsOf(
    "provider/drift/repair.ts",
    ["test/review/repair.test.ts"],
    [
      {
        guard: "A tag of a device may belong to a resource of another stack or to a lost resource.",
        find: "const declarer = declaredBy ?? claimant(object, repairer);",
        replace: "const declarer = declaredBy;",
      },
    ],
  ),
  ...mutantsOf(
    "provider/drift/expire.ts",
    [EXPIRE],
    [
      {
        guard: "An expired object that changes before its deletion stays (the race).",
        find: "return open !== undefined && !open.changed;",
        replace: "return open !== undefined || object !== undefined;",
        name: "changes between",
      },
      {
        guard: "An expired object is read again before its deletion.",
        find: "await removeObjects(connection, found.due, onRemoved, async (object) => {\n    await connection.forget();",
        replace: "await removeObjects(connection, found.due, onRemoved, async (object) => {",
        name: "between the search and the deletion",
      },
      {
        guard: "An expired object that was changed out of band stays.",
        find: "if (!changed) due.push({ ...resource, state });",
        replace: "due.push({ ...resource, state });",
        name: "changed out of band",
      },
      {
        guard: "An object that another resource declares without a passed end stays.",
        find: "if (lasting.ownerOf(resource) !== undefined) continue;",
        replace: "",
        name: "another resource declares",
      },
      {
        guard: "Another resource of the stack can declare an expired object without a passed end.",
        find: "...own.filter(({ urn }) => !urns.has(urn)),",
        replace: "",
        name: "another resource declares",
      },
      {
        guard: "An object of another service is reported, and not deleted.",
        find: "if (!ownUrns.has(resource.urn)) {",
        replace: "if (ownUrns.has(`${resource.urn} `)) {",
        name: "another service",
      },
      {
        guard: "An object that cannot be read is reported.",
        find: "notEvaluated.push(`${title} could not be read: ${error.message}`);",
        replace: "",
        name: "may not read",
      },
      {
        guard: "An object whose access the service has ended is not due.",
        find: 'state.expiryStatus === "removed" || hasEndedOnService({ state })',
        replace: 'state.expiryStatus === "removed"',
        name: "the service has ended",
      },
    ],
  ),
  ...mutantsOf(
    "provider/plan/saved/planDifferences.ts",
    [SAVED],
    [
      {
        guard: "A change of an object on the service is a difference.",
        find: "} else differences.push(...objectDifferences(was.objects, is.objects));",
        replace: "}",
      },
      {
        guard: "A change of the permission to read a list is a difference.",
        find: "if (!isDeepStrictEqual(was.unread, is.unread)) {",
        replace: "if (unread.length > 99) {",
      },
      {
        guard: "A change of a device is a difference.",
        find: "if (old && now) differences.push(",
        replace: "if (old && now && notes.length > 99) differences.push(",
      },
      {
        guard: "A changed declaration is a difference.",
        find: '...fieldDifferences("program", title, was.declared ?? {}, is.declared ?? {}),',
        replace: "",
      },
      {
        guard: "A change of the state is a difference.",
        find: '...fieldDifferences("state", title, was.found ?? {}, is.found ?? {}),',
        replace: "",
      },
      {
        guard: "Another object of a resource is a difference.",
        find: '...fieldDifferences("service", `${title}, matched object`, was.about, is.about),',
        replace: "",
      },
      {
        guard: "Another operation is a difference.",
        find: "if (fields.length > 0 || was.op === is.op) return fields;",
        replace: "if (fields.length >= 0 || was.op === is.op) return fields;",
      },
      {
        guard: "An added or removed step is a difference.",
        find: "if (!was || !is) {\n    const object",
        replace: "if (!was || !is) return [];\n  if (!was || !is) {\n    const object",
      },
    ],
  ),
  ...mutantsOf(
    "provider/plan/saved/planFile.ts",
    ["test/review/reviewedPlan.test.ts"],
    [
      {
        guard: "A plan file is valid for one stack.",
        find: "if (project !== stack.project || name !== stack.stack) {",
        replace: "if (project === '') {",
        name: "the file of a plan",
      },
      {
        guard: "The encrypted content of a plan file is for the same stack as its header.",
        find: "if (reviewed.project !== project || reviewed.stack !== name) {",
        replace: "if (reviewed.project === '') {",
        name: "the file of a plan",
      },
      {
        guard: "The encrypted content of a plan file is a plan, and no other secret.",
        find: "if (!opened.startsWith(MARK) || !BASE64.test(packed))",
        replace: "if (!BASE64.test(packed))",
        name: "the file of a plan",
      },
    ],
  ),
  ...mutantsOf(
    "provider/policyTests/runPolicyTests.ts",
    [POLICY_TESTS],
    [
      {
        guard: "A policy test without the objects of a kind fails.",
        find: "if (objects === undefined || unread.has(name as KindName))",
        replace: "if (objects === undefined)",
      },
      {
        guard: "A policy test fails if the access is not known.",
        find: "if (accessUnknown !== undefined) throw new Error(accessUnknown);",
        replace: "",
      },
      {
        guard: "A policy file that cannot be loaded is a failed test.",
        find: "if (reportsFiles) tests.push(...fileFailures(one));",
        replace: "",
      },
      {
        guard: "A policy test that throws an error fails.",
        find: "failures.push(thrown(error, path, line));",
        replace: "",
      },
      {
        guard: "An assertion with invalid arguments fails, with .not too.",
        find: "failures.push({ assertion, ...thrown(error, path, place.line) });",
        replace: "if (!negated) failures.push({ assertion, ...thrown(error, path, place.line) });",
      },
      {
        guard: "A negated assertion that holds fails.",
        find: "if (holds === negated) {",
        replace: "if (!holds && !negated) {",
      },
      {
        guard: "A policy test without an assertion has a warning.",
        find: "if (!asserted) warnings.push(",
        replace: "if (asserted && ended) warnings.push(",
      },
    ],
  ),
  ...mutantsOf(
    "provider/policyTests/matchers.ts",
    [POLICY_TESTS],
    [
      {
        guard: "A predicate of a policy test returns a boolean, and no promise.",
        find: 'if (typeof result === "boolean") return result;',
        replace: 'if (predicate !== "") return Boolean(result);',
      },
      {
        guard: "An API key with an unknown creation time exceeds every limit of its life.",
        find: "!(lifeMs <= days * DAY_MS)",
        replace: "lifeMs > days * DAY_MS",
      },
      {
        guard: "An API key without an end does not expire.",
        find: "keys.filter(({ expiresIn }) => expiresIn <= 0)",
        replace: "keys.filter(({ expiresIn }) => expiresIn === 0)",
      },
    ],
  ),
  ...mutantsOf(
    "provider/policyTests/queriedAccess.ts",
    [POLICY_TESTS],
    [
      {
        guard: "A query of a policy test has no undefined field.",
        find: "  login: text.exactOptional(),",
        replace: "  login: text.optional(),",
      },
      {
        guard: "A query of a policy test has no unknown field.",
        find: "const schema = z.strictObject({",
        replace: "const schema = z.object({",
      },
      {
        guard: "A list of networks has at least one network.",
        find: '.min(1, "must contain at least one network")',
        replace: "",
      },
    ],
  ),
  ...mutantsOf(
    "provider/policyTests/testCoverage.ts",
    [POLICY_TESTS],
    [
      {
        guard: "A changed namespace without a policy test blocks.",
        find: "if (isTested(namespace.tenant)) continue;",
        replace: "if (namespace.tenant !== '') continue;",
      },
      {
        guard: "A test of a namespace that does not exist blocks.",
        find: "} else if (!isCreated(declared)) {",
        replace: "} else if (isCreated(declared)) {",
      },
      {
        guard: "A test without a namespace blocks if there is no main namespace.",
        find: "if (main === undefined && unassigned.length > 0) {",
        replace: "if (main === undefined && unassigned.length > 99) {",
      },
    ],
  ),
  ...mutantsOf(
    "provider/lifecycle/claims.ts",
    [CLAIMS],
    [
      {
        guard: "Two resources of a program do not manage the same object.",
        find: "    if (other) {\n      throw",
        replace: "    if (other && resource === '') {\n      throw",
      },
      {
        guard: "A resource deletes no object that another resource of the program holds.",
        find: "return holders.some((holder) => holder.shared === undefined && holder.resource !== except);",
        replace: "return holders.length > 99 && except === key;",
      },
      {
        guard: "Replaced API keys that still work are kept.",
        find: "...(definition.keeps?.(state) ?? [])];",
        replace: "];",
      },
    ],
  ),
  ...mutantsOf(
    "provider/lifecycle/createOrAdopt.ts",
    [ADOPTION],
    [
      {
        guard: "An object that differs is adopted only with adopt: overwrite.",
        find: 'if (conflicts.length > 0 && adopt !== "overwrite") throw',
        replace: 'if (conflicts.length > 0 && adopt === "" as never) throw',
      },
      {
        guard: "An object that another resource of the program claimed is not taken.",
        find: "if (origin.isOthers(created.id) || (isMoved && !definition.identity))",
        replace: "if (isMoved && !definition.identity)",
      },
      {
        guard: "An object that another actor changed since is not updated.",
        find: "if (differing.length > 0 && (await isChangedByAnother(creation, created)))",
        replace: "if (differing.length > 99)",
      },
      {
        guard: "An unreadable last change counts as a change of another actor.",
        find: "return last?.declaredBy === undefined || !isSameDeclaration(last.declaredBy, declaration);",
        replace: "return last?.declaredBy !== undefined && !isSameDeclaration(last.declaredBy, declaration);",
      },
      {
        guard: "A created object is not replaced to match the declaration.",
        find: "if (changes.some((change) => change.replaces)) throw",
        replace: "if (changes.length > 99) throw",
      },
      {
        guard: "The object of a replaced resource is not inherited if another stack declared it last.",
        find: "return owner && declaration && !isSameStack(owner, declaration) ? undefined : existing;",
        replace: "return existing;",
      },
      {
        guard: "A create that the service refused is not repeated.",
        find: "if (!isUnclear(error) && !isUnprovenRefusal(error)) throw",
        replace: "if (!isUnclear(error) && !isNotFound(error)) throw",
      },
      {
        guard: "Equal resources of two programs are different resources.",
        find: "isSameStack(one, two) && one.resource === two.resource;",
        replace: "isSameStack(one, two);",
      },
    ],
  ),
  ...mutantsOf(
    "provider/kinds/plannedStep.ts",
    [ON_SERVICE],
    [
      {
        guard: "A resource with its own credential needs none of the credential's permissions.",
        find: 'Object.values((after ?? before)?.provider ?? {}).some((value) => holds(value, "[secret]"));',
        replace: "before === after;",
      },
    ],
  ),
  ...mutantsOf(
    "provider/plan/steps.ts",
    [ON_SERVICE],
    [
      {
        guard: "A resource of another service is not evaluated (onService).",
        find: 'return typeof own !== "string" || isSameService(own, url) ? undefined : own;',
        replace: "return own === url ? undefined : undefined;",
      },
      {
        guard: "The namespace of an instance with its own credential is unknown.",
        find: '(hasOwnCredential({ after: values }) ? "[secret]" : undefined)',
        replace: "undefined",
      },
    ],
  ),
  ...mutantsOf(
    "provider/service/connection.ts",
    [ON_SERVICE],
    [
      {
        guard: "Two spellings of an address are the same service (isSameService).",
        find: "return normal(left) === normal(right);",
        replace: "return left === right;",
      },
    ],
  ),
];
