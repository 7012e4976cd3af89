import type { EvaluatedLogins, SshIdentity } from "@gatehouse-access/sdk/policy";
import type { ResourceDefinition } from "./definition.ts";
import type { KindName, Objects } from "./object.ts";

/** Facts about a namespace that decide how its objects are evaluated. */
export interface DecidingFacts {
  /** True if the server ends access by itself. Otherwise, the policy has neither expiry times nor owners of keys. */
  readonly enforcesExpiry: boolean;
  /** True if the server has access policies. */
  readonly hasAccessModes: boolean;
  /**
   * The SSH keys of users, by user id and by e-mail address in lower case. Undefined if the credential may not read
   * them.
   */
  readonly userKeys: ReadonlyMap<string, readonly SshIdentity[]> | undefined;
}

/** Facts about a namespace that no object contains and no plan changes. */
export interface NamespaceFacts extends DecidingFacts {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace; its id if the credential may not read the name. */
  readonly name: string;
  /**
   * The ids of users who own keys and are not members, by e-mail address in lower case. Such a key admits logins again if
   * its owner becomes a member. Other servers, and servers whose caller is not an administrator, return no addresses.
   */
  readonly formerOwners: ReadonlyMap<string, string>;
  /** The login names and addresses of the most recent sessions, and the number of these sessions. */
  readonly seen: EvaluatedLogins & { readonly sessions: number };
  /** The lists that could not be read, although outcomes of access policies depend on them, as sentences. */
  readonly unreadIdentity: readonly string[];
}

/** The content of a {@link NamespaceState}. */
export interface NamespaceContent {
  readonly facts: NamespaceFacts;
  /** The objects by kind. A kind that could not be read is missing. */
  readonly objects: ReadonlyMap<KindName, Objects>;
  /** The objects that could not be read, by kind. */
  readonly unread: ReadonlyMap<KindName, Unread>;
  /** After a plan: the objects of kinds that could not be read. They show the privileges that the plan changes. */
  readonly ofUnread?: ReadonlyMap<KindName, PlanSides>;
  /** True if access policies authorize logins, and not public keys and firewall rules. */
  readonly accessPoliciesDecide: boolean;
  /**
   * The reason why the access in the namespace is not known, as a sentence. Undefined if the policy authorizes logins.
   */
  readonly accessUnknown: string | undefined;
  /**
   * Lists and resources that could not be evaluated, as sentences. The actual access may differ from the policy because
   * of them.
   */
  readonly notEvaluated: readonly string[];
  /** Other facts that could not be determined, as sentences. */
  readonly unknown: readonly string[];
}

/** The objects of one kind that a plan changes, before and after the plan. */
export interface PlanSides {
  readonly was: Objects;
  readonly is: Objects;
}

/** Objects that could not be read. */
export interface Unread {
  /** The objects in sentences: `API keys`. */
  readonly what: string;
  readonly reason: string;
  /** The consequence, as a clause: `unmanaged API keys cannot be detected`. */
  readonly missed: string;
}

/** Returns the objects of a kind; undefined if they could not be read. */
export type ObjectsOf = (definition: Pick<ResourceDefinition, "name">) => Objects | undefined;

/** A namespace whose objects can be found by their kind. */
export interface HasObjects {
  readonly of: ObjectsOf;
}

/** A namespace of which a copy can have other objects. */
export interface Replaceable<S> {
  /** Returns the same namespace with other objects of one kind. */
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

  /** Name of the namespace; its id if the credential may not read the name. */
  get name(): string {
    return this.facts.name;
  }

  /** The login names and addresses of the most recent sessions. */
  get seen(): NamespaceFacts["seen"] {
    return this.facts.seen;
  }

  /** Returns the objects of a kind, by their key. Undefined if they could not be read. */
  readonly of = ({ name }: { readonly name: string }): Objects | undefined => this.objects.get(name);
}
