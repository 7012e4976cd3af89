import type { AccessKey, LegacyPolicy } from "./decisions.ts";
import type { IdentityRules, Principal } from "./identity.ts";

/** The objects of a namespace that authorize logins. */
export interface NamespacePolicy extends LegacyPolicy {
  /**
   * The access policies and the principals of a namespace in identity mode. In this mode, public keys and firewall
   * rules have no effect. Undefined in legacy mode.
   */
  readonly identity?: IdentityRules | undefined;
}

/** The subject of access: a public key, or a principal in identity mode. */
export type AccessSubject = AccessKey | Principal;

/** The identity of a subject. */
export interface SubjectFacts {
  /** The fingerprint of a public key, or the id of a principal. */
  readonly id: string;
  readonly name: string;
  readonly kind: "key" | Principal["kind"];
}
