import { type Outcome, subjectFacts } from "@gatehouse-access/sdk/policy";
import type { Deciding } from "../model/kind.ts";
import {
  type Exception,
  exceptionFor,
  ManagedObjects,
  type OwnResource,
  shownObject,
  type UnmanagedObject,
} from "../namespace/coverage.ts";
import { type Inventory, type LiveObject, watchedIn } from "../namespace/liveObjects.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { packageVersion } from "../packageFile.ts";
import { kindsWith } from "../resources/index.ts";
import { urnName, urnScope } from "../urn.ts";
import { addressWord, loginWord } from "../words.ts";
import { type AccessGrant, type AccessReport, accessRows } from "./answer.ts";
import { type AccessInquiry, accessView, evaluatedLines, standInOf } from "./inquiry.ts";

/** An object that controls access or its administration. */
export interface EvidenceObject extends UnmanagedObject {
  /** The e-mail address of a key's owner, or the owner's user id. Omitted if the key has no owner. */
  readonly owner?: string;
  /**
   * The resource that declares the object, such as `ana of fleet/prod`. Null if no resource declares the object, or if
   * the declaration is not known.
   */
  readonly declaredBy: string | null;
  /**
   * True if the object is managed. With `--stack`, an object is managed if it is in the state. Without `--stack`, it is
   * managed if a program has declared it. Null if the declarations are not known.
   */
  readonly isManaged: boolean | null;
  /** The expiry time of the object, RFC 3339 in UTC; null if the object does not expire. */
  readonly until: string | null;
  /**
   * The kind of expiry. `enforced`: the service enforces the expiry. `by-run`: a run, or `gatehouse expire`, deletes
   * the object. Omitted if the object does not expire.
   */
  readonly ends?: "enforced" | "by-run";
}

/**
 * The access of one subject. Every combination of a listed login, address and device is allowed. `<any other login>`
 * and `<any other address>` represent the logins and addresses that the policy does not mention.
 */
export interface EvidenceGrant extends Pick<AccessGrant, "logins" | "addresses" | "devices" | "until"> {
  /** The key, user or service account that has the access. */
  readonly subject: EvidenceObject;
  /**
   * The rule or access policy that allows the access. Null if no rule matches, since the service allows a login by
   * default.
   */
  readonly by: EvidenceObject | null;
  /** Condition of the access. `unknown`: the service does not show whether the user has an SSH key. */
  readonly outcome: Outcome;
}

/** Evidence for an access review: `gatehouse access --report <file>.json`. */
export interface AccessEvidence extends Pick<AccessReport, "devices" | "notEvaluated" | "unknown"> {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** Time when the command started to read the namespace, RFC 3339 in UTC. */
  readonly readAt: string;
  /** Version of Gatehouse. */
  readonly toolVersion: string;
  /** Address of the service. */
  readonly service: string;
  readonly namespace: { readonly id: string; readonly name: string };
  /** The stack, such as `fleet/prod`. Its state shows which resource declares an object. Null without `--stack`. */
  readonly stack: string | null;
  /**
   * The checked-out commit of the program. Null without `--stack`. Also null if the program is not in a git repository.
   */
  readonly revision: {
    readonly commit: string;
    /** RFC 3339. */
    readonly committedAt: string;
    /** True if the files in the program's directory differ from the commit. */
    readonly hasUncommittedChanges: boolean;
  } | null;
  /** The evaluated keys, devices, logins and addresses, as sentences. */
  readonly evaluated: readonly string[];
  /** The access; null if it is not known. */
  readonly access: readonly EvidenceGrant[] | null;
  /** All objects that control access or its administration, including expired objects. */
  readonly objects: readonly EvidenceObject[];
}

/**
 * The input of {@link accessEvidence}: the live namespace, the resources of the stack (if a stack is given), and the
 * exceptions in access.ignore.
 */
export interface EvidenceSource {
  readonly live: NamespaceState;
  readonly own: readonly OwnResource[] | undefined;
  readonly exceptions: readonly Exception[];
}

/**
 * Returns the evidence for an access review: the access in a namespace, and the objects that control it, with their
 * declarations and expiry times.
 */
export function accessEvidence(
  source: Pick<AccessEvidence, "readAt" | "service" | "stack" | "revision">,
  { live, own, exceptions }: EvidenceSource,
  inquiry: AccessInquiry,
): AccessEvidence {
  const resources = new Map(own?.map((resource) => [resource.urn, resource]));
  const states = new ManagedObjects(own ?? []);
  // Only this project's server returns the declaration of an object.
  const isKnown = own !== undefined || live.facts.enforcesExpiry;
  const inventory: Inventory = watchedIn(live);
  const objects = inventory.objects.map((object): EvidenceObject => {
    const urn = states.ownerOf(object);
    const declared = resources.get(urn ?? "")?.outputs ?? {};
    const by = urn === undefined ? object.declaredBy : { ...urnScope(urn), resource: urnName(urn) };
    const isManaged = own ? urn !== undefined : by !== undefined;
    const exception = isManaged ? undefined : exceptionFor(exceptions, object, new Date(source.readAt));
    const { owner, ownerId } = object.state;
    // If the server does not return the owner, only the state contains it.
    const known = owner || ownerId || (declared.ownerId ? "" : declared.owner);
    return {
      ...shownObject({ object, exception }),
      ...(typeof known === "string" && known !== "" && { owner: known }),
      declaredBy: by ? `${by.resource} of ${by.project}/${by.stack}` : null,
      isManaged: isKnown ? isManaged : null,
      ...knownEnd(object, declared),
    };
  });
  const byId = new Map(objects.map((object) => [`${object.kind} ${object.id}`, object]));
  const objectOf = (kind: string, id: string, name = id): EvidenceObject =>
    byId.get(`${kind} ${id}`) ?? { kind, id, name, declaredBy: null, isManaged: null, until: null };
  const view = accessView(live, inquiry);
  const other = standInOf(view);
  const written = (logins: readonly string[], addresses: readonly string[]) => ({
    logins: logins.map(loginWord),
    addresses: addresses.map((address) => addressWord(address, other)),
  });
  const grants = () =>
    Array.from(accessRows(view), (row): EvidenceGrant => {
      const { subject, rule, policy, until = null, logins, addresses, ...access } = row;
      const { id, name, kind } = subjectFacts(subject);
      const by = policy
        ? objectOf(kindWith("decision", "policy"), policy.id, policy.name)
        : rule && objectOf(kindWith("decision", "rule"), rule.id);
      return {
        subject: objectOf(kindWith("subject", kind), id, name),
        by: by ?? null,
        ...written(logins, addresses),
        ...access,
        until,
      };
    });
  return {
    version: 1,
    ...source,
    toolVersion: packageVersion(),
    namespace: { id: live.tenant, name: live.name },
    evaluated: evaluatedLines(view),
    devices: view.devices,
    access: live.accessUnknown === undefined ? grants() : null,
    objects,
    notEvaluated: [
      ...live.notEvaluated,
      ...inventory.unknown,
      ...(isKnown
        ? []
        : [
            "unmanaged objects are not known, because this server does not return the declarations of objects; set --stack",
          ]),
    ],
    unknown: live.unknown,
  };
}

/** Returns the name of the object kind that has a given role in login decisions. */
function kindWith<P extends "subject" | "decision">(part: P, value: Deciding[P]): string {
  const kind = kindsWith("decides").find(({ decides }) => decides[part] === value);
  if (!kind) throw new Error(`access decisions have no field ${value}`);
  return kind.definition.name;
}

/**
 * Returns the expiry time that the service stores. If the service does not store one, returns the declared expiry time.
 */
function knownEnd({ state }: LiveObject, declared: NonNullable<OwnResource["outputs"]>) {
  if (typeof state.expiresAt === "string" && state.expiresAt !== "")
    return { until: state.expiresAt, ends: "enforced" as const };
  const { expiryStatus, expiresAt } = declared;
  return expiryStatus === "by-run" && typeof expiresAt === "string"
    ? { until: expiresAt, ends: "by-run" as const }
    : { until: null };
}
