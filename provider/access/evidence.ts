import { type AccessDevice, isPrincipal, type Outcome, subjectFacts } from "@gatehouse-access/sdk/policy";
import {
  type Exception,
  endedObjects,
  ManagedObjects,
  type OwnResource,
  shownObject,
  type UnmanagedObject,
  unmanagedOf,
} from "../estate/coverage.ts";
import { type ExpiredObject, endOfObject } from "../estate/expired.ts";
import type { Inventory, LiveObject } from "../estate/liveObjects.ts";
import type { Estate } from "../estate/namespaceState.ts";
import { packageVersion } from "../packageFile.ts";
import { urnName, urnScope } from "../urn.ts";
import { accessRows } from "./answer.ts";
import { type AccessInquiry, accessView, evaluatedLines } from "./inquiry.ts";

/** The revision of the program's files. */
export interface ProgramRevision {
  /** Id of the checked out commit. */
  readonly commit: string;
  /** Time of the commit, RFC 3339. */
  readonly committedAt: string;
  /** True if the files in the program's directory differ from the commit. */
  readonly hasUncommittedChanges: boolean;
}

/** A key, user or service account in the evidence, or a rule or access policy. */
export interface EvidenceObject {
  /** `key`, `user`, `service account`, `rule` or `policy`. */
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  /** The e-mail address of a key's owner, or the owner's user id; omitted if the key has no owner. */
  readonly owner?: string;
  /** The declaring resource, such as `ana of fleet/prod`; null if it is not known. */
  readonly declaredBy: string | null;
}

/** The access of one subject. Every combination of a listed login, address and device is allowed. */
export interface EvidenceGrant {
  readonly subject: EvidenceObject;
  /** The rule or access policy that allows the access; null if no rule matches, so that access is allowed by default. */
  readonly by: EvidenceObject | null;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  /** Uids of the devices. */
  readonly devices: readonly string[];
  /** Condition of the access. `unknown`: it is not known whether the user has an SSH key. */
  readonly outcome: Outcome;
  /** Time when the access ends, RFC 3339; null if the access does not end. */
  readonly until: string | null;
}

/** An object whose access ends. */
export interface EvidenceEnd {
  /** Name of the resource type, such as `PublicKey`. */
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  /** RFC 3339 in UTC. */
  readonly until: string;
  /** `enforced`: the service ends the access. `by-run`: a run, or `gatehouse expire`, removes the object. */
  readonly ends: string;
}

/** Evidence for an access review: `gatehouse access --report <file>.json`. */
export interface AccessEvidence {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** Time when the command started to read the namespace, RFC 3339 in UTC. */
  readonly readAt: string;
  /** Version of Gatehouse. */
  readonly toolVersion: string;
  /** Address of the service. */
  readonly service: string;
  /** Version of the server; null if it is not known. */
  readonly serverVersion: string | null;
  readonly namespace: { readonly id: string; readonly name: string };
  /** The stack whose state shows which resource declares an object, such as `fleet/prod`; null without `--stack`. */
  readonly stack: string | null;
  /** The revision of the program; null without `--stack`, and outside of a git repository. */
  readonly revision: ProgramRevision | null;
  /** The evaluated keys, devices, logins and addresses, as sentences. */
  readonly evaluated: readonly string[];
  readonly devices: readonly AccessDevice[];
  /** The access; null if it is not known. */
  readonly access: readonly EvidenceGrant[] | null;
  readonly ends: readonly EvidenceEnd[];
  /** Objects that no state of the command manages. Without `--stack`: objects that no program has declared. */
  readonly unmanaged: readonly UnmanagedObject[];
  /** Unmanaged objects whose access has ended. */
  readonly expired: readonly ExpiredObject[];
  /** Parts of the namespace that could not be read, as sentences. The evidence does not cover these parts. */
  readonly notEvaluated: readonly string[];
  /** Other data that could not be read, as sentences. */
  readonly unknown: readonly string[];
}

/** The input of {@link accessEvidence}. */
export interface EvidenceSource {
  readonly estate: Estate;
  readonly inventory: Inventory;
  readonly readAt: Date;
  readonly service: string;
  readonly server: {
    readonly version: string | undefined;
    /** True if the server returns the last declaration of an object. */
    readonly isOwn: boolean | undefined;
  };
  /** The stack, and its resources on the service; undefined without a stack. */
  readonly program:
    | {
        readonly stack: string;
        readonly own: readonly OwnResource[];
        readonly revision: ProgramRevision | null;
      }
    | undefined;
  readonly exceptions: readonly Exception[];
}

/** Returns who has access in a namespace, with the declaration and the end of each access. */
export function accessEvidence(source: EvidenceSource, inquiry: AccessInquiry): AccessEvidence {
  const { estate, inventory, readAt, service, server, program, exceptions } = source;
  const { tenant, members } = estate;
  const resources = new Map(program?.own.map((resource) => [resource.urn, resource]));
  const states = new ManagedObjects(program?.own ?? []);
  const managed = program ? states : { ownerOf: declarationOf };
  const objects = new Map(
    inventory.objects.map((object) => {
      const { kind, id } = plainObject(object);
      return [`${kind} ${id}`, object];
    }),
  );
  const declaredBy = (kind: string, id: string): string | null => {
    const object = objects.get(`${kind} ${id}`);
    const urn = object && states.ownerOf(object);
    return (urn === undefined ? object && declarationOf(object) : urnText(urn)) ?? null;
  };
  const view = accessView(estate, inquiry);
  const grant = ({
    subject,
    rule,
    policy,
    until,
    ...access
  }: ReturnType<typeof rowsOf>[number]): EvidenceGrant => {
    const { id, name, kind } = subjectFacts(subject);
    const owner = isPrincipal(subject) ? undefined : subject.owner;
    const email = members?.find((member) => member.id === owner)?.email ?? owner;
    const type = { key: "PublicKey", user: "Member", "service account": "ServiceAccount" }[kind];
    const by = policy
      ? {
          kind: "policy",
          id: policy.id,
          name: policy.name,
          declaredBy: declaredBy("AccessPolicy", policy.id),
        }
      : rule && { kind: "rule", id: rule.id, name: rule.id, declaredBy: declaredBy("FirewallRule", rule.id) };
    return {
      subject: {
        kind,
        id,
        name,
        ...(email !== undefined && { owner: email }),
        declaredBy: declaredBy(type, id),
      },
      by,
      ...access,
      until: until ?? null,
    };
  };
  return {
    version: 1,
    readAt: readAt.toISOString(),
    toolVersion: packageVersion(),
    service,
    serverVersion: server.version ?? null,
    namespace: { id: tenant, name: estate.name },
    stack: program?.stack ?? null,
    revision: program?.revision ?? null,
    evaluated: evaluatedLines(view),
    devices: view.devices,
    access: estate.accessUnknown === undefined ? rowsOf(view).map(grant) : null,
    ends: inventory.objects.flatMap((object) => endsOf(object, resources.get(states.ownerOf(object) ?? ""))),
    unmanaged: unmanagedOf(inventory.objects, managed, exceptions).map(shownObject),
    expired: endedObjects(inventory.objects, managed, readAt),
    notEvaluated: [
      ...estate.notEvaluated,
      ...inventory.unknown,
      ...(program || server.isOwn
        ? []
        : [
            "unmanaged objects are not known, because this server does not return the declarations of objects; set --stack",
          ]),
    ],
    unknown: estate.unknown,
  };
}

const plainObject = (object: LiveObject) => shownObject({ object, exception: undefined });

const rowsOf = (view: Parameters<typeof accessRows>[0]) => [...accessRows(view)];

const urnText = (urn: string): string => {
  const { project, stack } = urnScope(urn);
  return `${urnName(urn)} of ${project}/${stack}`;
};

const declarationOf = ({ declaredBy }: LiveObject): string | undefined =>
  declaredBy && `${declaredBy.resource} of ${declaredBy.project}/${declaredBy.stack}`;

function endsOf(object: LiveObject, resource: OwnResource | undefined): EvidenceEnd[] {
  const end = endOfObject(object, resource?.outputs);
  return end ? [{ ...plainObject(object), ...end }] : [];
}
