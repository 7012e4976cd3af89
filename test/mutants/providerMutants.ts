// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts of mutants are parts of the sources

import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the provider: reviews, repairs, expired objects, policy tests, and the adoption of objects. */
export const providerMutants: readonly Mutant[] = mutantsOf({
  "provider/review/guards/lockouts.ts": {
    "test/review/guards/lockouts.test.ts": {
      "An invited administrator cannot revert a change.":
        '[-status === "accepted" && -]roleAtLeast(role, "administrator")',
      "An operator cannot revert a change.": 'roleAtLeast(role, [-"administrator"-]{+"operator"+})',
      "The owner does not count as a remaining administrator.":
        'seats.filter(([-{ role }) => role !== "owner"-]{+) => true+})',
      "The loss of the last administrator blocks.":
        "[-!isOwner && others(administrators(before)).length > 0 && others(left).length === 0-]{+false+}",
      "Only the owner may apply the loss of all other administrators.":
        'const isOwner = own(before)[-?.role === "owner"-]{+ !== undefined+};',
      "The user who applies a change keeps the administrator role.": "if (was && ![-is-]{+own(after)+}) {",
      "The user who applies a change stays a member.": "if (was && !is{+ && own(after)+}) {",
      "The running workload keeps its role.":
        "workload && [[-workload.role, workload.issuer-]{+workload.issuer+}, workload.audience, workload.claims];",
      "The running workload keeps its issuer.":
        "workload && [workload.role, [-workload.issuer, workload.audience-]{+workload.audience+}, workload.claims];",
      "The running workload keeps its audience.":
        "workload && [workload.role, workload.issuer, [-workload.audience, workload.claims-]{+workload.claims+}];",
      "The running workload keeps its claims.":
        "workload && [workload.role, workload.issuer, workload.audience[-, workload.claims-]];",
      "The running workload is not deleted.":
        "if (!was || {+!is || +}isDeepStrictEqual(rulesOf(was), rulesOf(is))) return [];",
      "Protected devices stay reachable.":
        "const lost[- = groups.length === 0 ? [] : unreachable(before, after)-]{+: AccessDevice[] = []+};",
      "A group of protected devices contains the devices of its tag.":
        '[-(kind !== "name" && tags.includes(word))-]{+false+}',
      "The last access policy of a namespace is not deleted (no-access-policy).":
        'return [-isLast ? [{ code: "no-access-policy", message }] : -][];',
      "no-access-policy concerns only namespaces that admitted a login.":
        "[-&& !before.reached().isEmpty()-];",
    },
  },
  "provider/resources/member/index.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "The operations of member need their permissions.":
        'create: [[-"inviteMember"], update: ["updateMember"], delete: ["removeMember"-]{+], update: [], delete: [+}]',
    },
    "test/review/guards/repair.test.ts": {
      "A repair keeps the user who runs it.": '[-idWithin(object) === userId-]{+userId === ""+} ?',
    },
  },
  "provider/resources/accessPolicy.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "The operations of accessPolicy need their permissions.":
        'create: [[-"createAccessPolicy"],\n    update: ["updateAccessPolicy"],\n    delete: ["deleteAccessPolicy"],-]{+], update: [], delete: []+}',
    },
    "test/review/guards/repair.test.ts": {
      "A repair keeps the last access policies.": "isClosed {+&& _object.name === _object.id +}?",
    },
  },
  "provider/resources/installKey/index.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "The operations of installKey need their permissions.":
        'create: [[-"createInstallKey"],\n    update: ["updateInstallKey"],\n    delete: ["updateInstallKey"],-]{+], update: [], delete: []+}',
    },
  },
  "provider/resources/tag.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "The operations of tag need their permissions.": 'create: [], update: [[-"renameTag"-]], delete: []',
    },
  },
  "provider/resources/deviceTagAttachment.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "The operations of deviceTagAttachment need their permissions.":
        'create: [[-"createDeviceTag"], update: ["createDeviceTag"], delete: ["deleteDeviceTag"-]{+], update: [], delete: [+}]',
    },
  },
  "provider/resources/trustedWorkload.ts": {
    "test/review/guards/repair.test.ts": {
      "A repair keeps the workload that runs it.":
        '[-idWithin(object) === workloadId-]{+workloadId === ""+} ?',
    },
  },
  "provider/resources/apiKey/index.ts": {
    "test/review/guards/repair.test.ts": {
      "A repair with an API key keeps every API key.":
        'credential === [-"apiKey"-]{+"anonymous"+}\n        ?',
    },
  },
  "provider/resources/device.ts": {
    "test/review/guards/planProblems.test.ts > the quota of devices": {
      "A plan accepts no device beyond the quota of the namespace.":
        "if (added <= [-free-]{+maxDevices+}) return [];",
      "A machine that enrolled again needs no quota.":
        'device && device.status !== "accepted"[- && taken[index]?.status !== "accepted"-]',
    },
  },
  "provider/resources/firewallRule.ts": {
    "test/review/patternCosts.test.ts": {
      "The patterns of firewall rules have a maximum cost.":
        "if (cost [-<= FIREWALL_PATTERNS_MAX || cost <= costOf(before)-]{+> 0+}) return [];",
    },
  },
  "provider/review/guards/planProblems.ts": {
    "test/review/guards/missingPermissions.test.ts": {
      "A user needs the role of the operation.":
        "[-minRole !== null && role !== undefined && !roleAtLeast(role, minRole)-]{+false+}",
      "An API key may call only the operations that accept API keys.":
        'if (kind === "apikey" && [-!auth.includes("apikey")-]{+auth.length === 0+}) {',
      "A workload may call only the operations that accept workloads.":
        'if (kind === "workload" && [-!takesWorkload(operation)-]{+auth.length === 0+}) {',
      "A workload has the role of its session.":
        'if (workload) return { kind: "workload", role: [-workload.role-]{+undefined+} };',
      "A replacement also needs the permission to delete.":
        'op === "replace" ? ["create"[-, "delete"-]] : [op]',
      "A removed Device resource removes its device only if onDestroy is remove.":
        "!before.retained[- && (kindOf(planned).plan.deletesObject?.(before) ?? true)-];",
    },
    "test/review/guards/planProblems.test.ts > the quota of namespaces": {
      "A plan creates no namespace beyond the quota of the user.":
        "if ([-owned.length + -]added.length <= maxNamespaces) return [];",
      "The quota of namespaces counts only own namespaces.": "[-.filter(({ owner }) => owner === userId)-]",
    },
    "test/review/guards/planProblems.test.ts > missing device": {
      "A new resource needs its device.":
        "if (given.has(selector) || [-(await listing(devices).find(deviceKey(selector)))-]{+devices+}) return [];",
    },
    "test/review/guards/planProblems.test.ts > missing tag": {
      "A filter needs its tags.": ".filter(([-{ tag }) => !known.has(tag)-]{+) => false+})",
    },
    "test/review/guards/planProblems.test.ts > missing namespace": {
      "A resource needs an existing namespace.":
        '[-if (lost.length > 0) add("namespace", [`${firstTitles(lost)}: ${namespace}`]);-]',
    },
    "test/review/guards/planProblems.test.ts > without a namespace": {
      "A resource needs a namespace.": 'if (homeless.length > [-0-]{+99+}) add("namespace"',
    },
    "test/review/guards/planProblems.test.ts > existing object": {
      "A plan creates no object that exists already.":
        "if ([-!existing || held.has(existing.id)-]{+existing || held.size > 0+}) return [];",
    },
    "test/review/guards/planProblems.test.ts > earlier run": {
      "Only an object that an earlier run created for the same resource of the same stack may exist.":
        "owner?.project === project[- && owner.stack === stack && owner.resource === name-]",
    },
    "test/review/guards/planProblems.test.ts > among many new objects": {
      "An existing object is found among many new objects.":
        "return group.filter(([-{ inputs }) => claimsOf(inputs).some((key) => claimed.has(key)-]{+) => claimed.has(first.tenant as string+}));",
    },
    "test/review/guards/planProblems.test.ts > out of band": {
      "An update reverts no change that another actor made.":
        "return [-error ? [`${title}: ${error.textIn()}`] : -][];",
    },
    "test/review/guards/planProblems.test.ts > contradictory rules": {
      "An allow rule and a deny rule have different priorities.":
        'return [-changed.some(({ action, priority }) => (action === "deny" ? allows : denies).has(priority))-]{+allows.size < 0 && denies.size < 0+};',
    },
    "test/review/guards/planProblems.test.ts > missing permissions": {
      "A plan needs the permissions of its operations.":
        "const refused = missingPermissions([-actor-]{+{ ...actor, role: undefined }+}, sure, ofNew);",
    },
  },
  "provider/drift/repair.ts": {
    "test/review/guards/repair.test.ts": {
      "A repair keeps objects that this stack declared earlier.":
        'if (declarer && isSameStack(declarer, repairer) && [-!repairer.deletesForgotten-]{+kind === "anonymous"+})',
      "A repair keeps objects of other stacks.":
        "return [-foreign(declarer, repairer) ?? foreign(object.declaredBy, repairer)-]{+undefined+};",
      "A repair reverts no object that another stack declared last.":
        "return [-foreign(resource.declaredBy, repairer)-]{+undefined+};",
      "A repair reverts no resource that the program changes.":
        "if (changed.has([-resource.urn-]{+`${resource.urn} `+}))",
      "--adopt-from allows the change only of the listed stacks.":
        "if ([-adoptFrom.includes(whole) || (owner.project === project && adoptFrom.includes(owner.stack))-]{+adoptFrom.length > 0+})",
      "The name of a stack in --adopt-from refers to the same project.":
        "([-owner.project === project-]{+project !== whole+} && adoptFrom.includes(owner.stack))",
      "The declarer is unknown on a server that records no declarations.":
        "if (![-isRecorded || !-]whole) unknown.push(object);",
      "The declarer of a device's tag is unknown if the audit trail has no entry of the tag.":
        "if (added === undefined) [-unknown.push(object-]{+known.push({ object, declaredBy: undefined }+});",
      "An object that is no longer due is not deleted.":
        "[-if (!(await isDue(object))) continue-]{+await isDue(object)+};",
      "A failed deletion is reported.": "if (failures.length > [-0-]{+99+}) {",
    },
    "test/review/guards/repair.test.ts > manual tag": {
      "A tag of a device may belong to a resource of another stack or to a lost resource.":
        "const declarer = declaredBy[- ?? claimant(object, repairer)-];",
    },
  },
  "provider/drift/expire.ts": {
    "test/review/guards/expire.test.ts > changes between": {
      "An expired object that changes before its deletion stays (the race).":
        "return open !== undefined [-&& !open.changed-]{+|| object !== undefined+};",
    },
    "test/review/guards/expire.test.ts > between the search and the deletion": {
      "An expired object is read again before its deletion.":
        "await removeObjects(connection, found.due, onRemoved, async (object) => {[-\n    await connection.forget();-]",
    },
    "test/review/guards/expire.test.ts > changed out of band": {
      "An expired object that was changed out of band stays.":
        "[-if (!changed) -]due.push({ ...resource, state });",
    },
    "test/review/guards/expire.test.ts > another resource declares": {
      "An object that another resource declares without a passed end stays.":
        "[-if (lasting.ownerOf(resource) !== undefined) continue;-]",
      "Another resource of the stack can declare an expired object without a passed end.":
        "[-...own.filter(({ urn }) => !urns.has(urn)),-]",
    },
    "test/review/guards/expire.test.ts > another service": {
      "An object of another service is reported, and not deleted.":
        "if ([-!ownUrns.has(resource.urn-]{+ownUrns.has(`${resource.urn} `+})) {",
    },
    "test/review/guards/expire.test.ts > may not read": {
      "An object that cannot be read is reported.":
        "[-notEvaluated.push(`${title} could not be read: ${error.message}`);-]",
    },
    "test/review/guards/expire.test.ts > the service has ended": {
      "An object whose access the service has ended is not due.":
        'state.expiryStatus === "removed"[- || hasEndedOnService({ state })-]',
    },
  },
  "provider/plan/saved/planDifferences.ts": {
    "test/review/guards/savedPlan.test.ts": {
      "A change of an object on the service is a difference.":
        "}[- else differences.push(...objectDifferences(was.objects, is.objects));-]",
      "A change of the permission to read a list is a difference.":
        "if ([-!isDeepStrictEqual(was.unread, is.unread)-]{+unread.length > 99+}) {",
      "A change of a device is a difference.": "if (old && now{+ && notes.length > 99+}) differences.push(",
      "A changed declaration is a difference.":
        '[-...fieldDifferences("program", title, was.declared ?? {}, is.declared ?? {}),-]',
      "A change of the state is a difference.":
        '[-...fieldDifferences("state", title, was.found ?? {}, is.found ?? {}),-]',
      "Another object of a resource is a difference.":
        '[-...fieldDifferences("service", `${title}, matched object`, was.about, is.about),-]',
      "Another operation is a difference.": "if (fields.length >{+=+} 0 || was.op === is.op) return fields;",
      "An added or removed step is a difference.":
        "if (!was || !is) {+return [];\n  if (!was || !is) +}{\n    const object",
    },
  },
  "provider/plan/saved/planFile.ts": {
    "test/review/reviewedPlan.test.ts > the file of a plan": {
      "A plan file is valid for one stack.":
        "if (project [-!== stack.project || name !== stack.stack-]{+=== ''+}) {",
      "The encrypted content of a plan file is for the same stack as its header.":
        "if (reviewed.project [-!== project || reviewed.stack !== name-]{+=== ''+}) {",
      "The encrypted content of a plan file is a plan, and no other secret.":
        "if (![-opened.startsWith(MARK) || !-]BASE64.test(packed))",
    },
  },
  "provider/policyTests/runPolicyTests.ts": {
    "test/review/guards/policyTests.test.ts": {
      "A policy test without the objects of a kind fails.":
        "if (objects === undefined[- || unread.has(name)-])",
      "A policy test fails if the access is not known.":
        "[-if (accessUnknown !== undefined) throw new Error(accessUnknown);-]",
      "A policy file that cannot be loaded is a failed test.":
        "[-if (reportsFiles) tests.push(...fileFailures(one));-]",
      "A policy test that throws an error fails.": "[-failures.push(thrown(error, path, line));-]",
      "An assertion with invalid arguments fails, with .not too.":
        "{+if (!negated) +}failures.push({ assertion, ...thrown(error, path, place.line) });",
      "A negated assertion that holds fails.": "if ([-holds === -]{+!holds && !+}negated) {",
      "A policy test without an assertion has a warning.":
        "if ([-!asserted-]{+asserted && ended+}) warnings.push(",
    },
  },
  "provider/policyTests/matchers.ts": {
    "test/review/guards/policyTests.test.ts": {
      "A predicate of a policy test returns a boolean, and no promise.":
        'if ([-typeof result === "boolean") return result-]{+predicate !== "") return Boolean(result)+};',
      "An API key with an unknown creation time exceeds every limit of its life.":
        "[-!(lifeMs <= days * DAY)-]{+lifeMs > days * DAY+}",
      "An API key without an end does not expire.":
        "keys.filter(({ expiresIn }) => expiresIn [-<-]{+==+}= 0)",
    },
  },
  "provider/policyTests/queriedAccess.ts": {
    "test/review/guards/policyTests.test.ts": {
      "A query of a policy test has no undefined field.":
        "  login: [-text.exactOptional-]{+text.optional+}(),",
      "A query of a policy test has no unknown field.": "const schema = [-z.strictObject-]{+z.object+}({",
      "A list of networks has at least one network.": '[-.min(1, "must contain at least one network")-]',
    },
  },
  "provider/policyTests/testCoverage.ts": {
    "test/review/testCoverage.test.ts": {
      "A changed namespace without a policy test blocks.":
        "if ([-isTested(namespace.tenant)-]{+namespace.tenant !== ''+}) continue;",
      "A test of a namespace that does not exist blocks.": "} else if ([-!-]isCreated(declared)) {",
      "A test without a namespace blocks if there is no main namespace.":
        "if (main === undefined && unassigned.length > [-0-]{+99+}) {",
    },
  },
  "provider/lifecycle/claims.ts": {
    "test/provider/claims.test.ts": {
      "Two resources of a program do not manage the same object.":
        "    if (other{+ && resource === ''+}) {\n      throw",
      "A resource deletes no object that another resource of the program holds.":
        "return [-holders.some((holder) => holder.shared === undefined && holder.resource !== except)-]{+holders.length > 99 && except === key+};",
      "Replaced API keys that still work are kept.": "[-, ...definition.rotation.keeps(state)-]]",
    },
  },
  "provider/lifecycle/createOrAdopt.ts": {
    "test/provider/adoptionGuards.test.ts": {
      "An object that differs is adopted only with adopt: overwrite.":
        'if (conflicts.length > 0 && adopt [-!== "overwrite"-]{+=== "" as never+}) throw',
      "An object that another resource of the program claimed is not taken.":
        "if ([-origin.isOthers(created.id) || (isMoved && !definition.identity)-]{+isMoved && !definition.identity+})",
      "An object that another actor changed since is not updated.":
        "if (differing.length > [-0 && (await isChangedByAnother(creation, created))-]{+99+})",
      "An unreadable last change counts as a change of another actor.":
        "return last?.declaredBy [-=== undefined ||-]{+!== undefined &&+} !isSameDeclaration(last.declaredBy, declaration);",
      "A created object is not replaced to match the declaration.":
        "if ([-changes.some((change) => change.replaces)-]{+changes.length > 99+}) throw",
      "The object of a replaced resource is not inherited if another stack declared it last.":
        "return [-owner && declaration && !isSameStack(owner, declaration) ? undefined : -]existing;",
      "A create that the service refused is not repeated.":
        "if (!isUnclear(error) && ![-isUnprovenRefusal-]{+isNotFound+}(error)) throw",
      "Equal resources of two programs are different resources.":
        "isSameStack(one, two)[- && one.resource === two.resource-];",
    },
  },
  "provider/model/plannedStep.ts": {
    "test/review/onService.test.ts": {
      "A resource with its own credential needs none of the credential's permissions.":
        '[-Object.values((after ?? before)?.provider ?? {}).some((value) => holds(value, "[secret]"))-]{+before === after+};',
    },
  },
  "provider/providers/terraform/configuration.ts": {
    "test/terraform/preflight.test.ts > the check of the connection": {
      "A token is checked by the service before a plan (preflight).": 'if (kind === "token"{+ && false+})',
      "Without skip_preflight, the connection is checked.":
        'if (this.isUnknown || this.#skipsPreflight [-===-]{+!==+} "true" ||',
    },
  },
  "provider/plan/terraform/configurationFacts.ts": {
    "test/terraform/providerUrls.test.ts": {
      "An expression with more than a variable has an unknown value.":
        "return values.length > 0[- && values.every(isVariable)-];",
      "An ephemeral variable has an unknown value.":
        "return declarations.length > 0[- && declarations.every(isKept)-];",
    },
  },
  "provider/plan/steps.ts": {
    "test/review/onService.test.ts": {
      "A resource of another service is not evaluated (onService).":
        'return [-typeof own !== "string" || isSameService(own, url) ? undefined : own-]{+own === url ? undefined : undefined+};',
      "The namespace of an instance with its own credential is unknown.":
        '[-(hasOwnCredential({ after: values }) ? "[secret]" : undefined)-]{+undefined+}',
    },
  },
  "provider/service/connection.ts": {
    "test/review/onService.test.ts": {
      "Two spellings of an address are the same service (isSameService).":
        "return [-normal(left) === normal(right)-]{+left === right+};",
    },
  },
});
