import type { EvaluatedLogins, SshIdentity } from "@gatehouse-access/sdk/policy";
import type { ResourceDefinition } from "./definition.ts";
import type { KindName, Objects } from "./object.ts";

/** Facts about a namespace that determine how its objects are evaluated. */
export interface DecidingFacts {
  /**
   * True if the server itself enforces expiry times. Otherwise, the policy contains neither expiry times nor owners of
   * keys.
   */
  readonly enforcesExpiry: boolean;
  /** True if the server has access policies. */
  readonly hasAccessModes: boolean;
  /**
   * The SSH keys of users. The map contains each user twice: by user id, and by e-mail address in lower case. Undefined
   * if the credential has no permission to read the keys.
   */
  readonly userKeys: ReadonlyMap<string, readonly SshIdentity[]> | undefined;
}

/** Facts about a namespace that its objects do not contain and that no plan changes. */
export interface NamespaceFacts extends DecidingFacts {
  /** Id of the namespace. */
  readonly tenant: string;
  /** The name of the namespace, or its id if the credential has no permission to read the name. */
  readonly name: string;
  /**
   * The ids of users who own keys but are not members. The map key is the user's e-mail address in lower case. If such
   * a user becomes a member, the user's keys authorize logins again. The map is empty if the service does not return
   * the addresses of owners. Other servers never return them, and `gatehouse-server` returns them only to
   * administrators.
   */
  readonly formerOwners: ReadonlyMap<string, string>;
  /** The login names and IP addresses of the most recent sessions, and the number of these sessions. */
  readonly seen: EvaluatedLogins & { readonly sessions: number };
  /**
   * The lists that determine the effect of access policies, but could not be read. Each list is described in a
   * sentence.
   */
  readonly unreadIdentity: readonly string[];
}

/** The content of a {@link NamespaceState}. */
export interface NamespaceContent {
  readonly facts: NamespaceFacts;
  /** The objects by kind. Contains no entry for a kind that could not be read. */
  readonly objects: ReadonlyMap<KindName, Objects>;
  /** The objects that could not be read, by kind. */
  readonly unread: ReadonlyMap<KindName, Unread>;
  /**
   * The objects that the plan contains. Only for kinds whose objects could not be read. Set only in a namespace after a
   * plan. Reports use these objects to show the privileges that the plan changes.
   */
  readonly ofUnread?: ReadonlyMap<KindName, PlanSides>;
  /** True if access policies authorize logins. False if public keys and firewall rules authorize them. */
  readonly accessPoliciesDecide: boolean;
  /** The reason why access in the namespace cannot be evaluated, as a sentence. Undefined if it can be evaluated. */
  readonly accessUnknown: string | undefined;
  /**
   * The lists and resources that could not be evaluated, as sentences. Because they are not evaluated, the actual
   * access may differ from the policy.
   */
  readonly notEvaluated: readonly string[];
  /** Other facts that could not be determined, as sentences. */
  readonly unknown: readonly string[];
}

/** The objects of one kind that a plan contains, before and after the plan. */
export interface PlanSides {
  readonly was: Objects;
  readonly is: Objects;
}

/** A note about objects of a kind that could not be read. */
export interface Unread {
  /** The plural noun for the objects in sentences: `API keys`. */
  readonly what: string;
  readonly reason: string;
  /** The consequence of the missing objects, as a clause: `unmanaged API keys cannot be detected`. */
  readonly missed: string;
}

/** Returns the objects of a kind, or undefined if they could not be read. */
export type ObjectsOf = (definition: Pick<ResourceDefinition, "name">) => Objects | undefined;

/** A namespace whose objects can be found by their kind. */
export interface HasObjects {
  readonly of: ObjectsOf;
}

/** A namespace that can be copied with different objects. */
export interface Replaceable<S> {
  /** Returns a copy of the namespace in which the objects of one kind are replaced. */
  withObjects(definition: Pick<ResourceDefinition, "name">, objects: Objects): S;
}

/** The objects of a namespace, by kind. */
export class NamespaceObjects implements NamespaceContent {
  readonly facts: NamespaceFacts;
  readonly objects: ReadonlyMap<KindName, Objects>;
  readonly unread: ReadonlyMap<KindName, Unread>;
  readonly ofUnread: ReadonlyMap<KindName, PlanSides>;
  readonly accessPoliciesDecide: boolean;
  readonly accessUnknown: string | undefined;
  readonly notEvaluated: readonly string[];
  readonly unknown: readonly string[];

  constructor(content: NamespaceContent) {
    this.facts = content.facts;
    this.objects = content.objects;
    this.unread = content.unread;
    this.ofUnread = content.ofUnread ?? new Map();
    this.accessPoliciesDecide = content.accessPoliciesDecide;
    this.accessUnknown = content.accessUnknown;
    this.notEvaluated = content.notEvaluated;
    this.unknown = content.unknown;
  }

  /** Id of the namespace. */
  get tenant(): string {
    return this.facts.tenant;
  }

  /** The name of the namespace, or its id if the credential has no permission to read the name. */
  get name(): string {
    return this.facts.name;
  }

  /** The login names and IP addresses of the most recent sessions. */
  get seen(): NamespaceFacts["seen"] {
    return this.facts.seen;
  }

  /** Returns the objects of a kind, by key. Returns undefined if the objects could not be read. */
  readonly of = ({ name }: { readonly name: string }): Objects | undefined => this.objects.get(name);
}
