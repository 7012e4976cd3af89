import { ROLES, type Role } from "@gatehouse-access/sdk/contract";
import type { Credentials, TestUser } from "../testApp.ts";
import type { MatrixFixture, PreparedNamespace } from "./fixture.ts";
import { refusedCredentials } from "./refused.ts";

/** The identity behind a credential (rules, section 1). */
export interface Identity {
  readonly kind: "jwt" | "apikey" | "device" | "workload";
  /** The credential's namespace; empty if the credential has no namespace. */
  readonly tenant: string;
  /** The role in the credential's namespace; null if the credential belongs to a device or has no namespace. */
  readonly role: Role | null;
  /** The user's role in the lab, even if the credential is for another namespace; null for devices. */
  readonly labRole: Role | null;
  /** True if the user owns a namespace. */
  readonly owns: boolean;
}

/** A caller, which is one column of the matrix. */
export interface Caller {
  readonly name: string;
  readonly credentials: Credentials;
  /** The identity of the caller; null if the credential is invalid. */
  readonly identity: Identity | null;
}

function callersOfPlace(name: string, place: PreparedNamespace, lab: PreparedNamespace): Caller[] {
  const { tenant } = place;
  const labRole = (role: Role) => (place === lab ? role : null);
  const device = { kind: "device", tenant, role: null, labRole: null, owns: false } as const;
  return [
    ...ROLES.flatMap((role): Caller[] => [
      {
        name: `${name}: ${role}`,
        credentials: { token: place.members.get(role)?.token },
        identity: { kind: "jwt", tenant, role, labRole: labRole(role), owns: role === "owner" },
      },
      {
        name: `${name}: ${role}'s key`,
        credentials: { apiKey: place.keys.get(role) },
        identity: { kind: "apikey", tenant, role, labRole: labRole(role), owns: false },
      },
    ]),
    ...[...place.workloads].map(
      ([role, { token }]): Caller => ({
        name: `${name}: ${role}'s workload`,
        credentials: { token },
        identity: { kind: "workload", tenant, role, labRole: labRole(role), owns: false },
      }),
    ),
    { name: `${name}: device`, credentials: { token: place.deviceToken }, identity: device },
  ];
}

/** Returns all callers with which the matrix tests an endpoint of the lab. */
export async function callersOf(fixture: MatrixFixture): Promise<Caller[]> {
  const refused = Object.entries(await refusedCredentials(fixture));
  return [
    ...refused.map(([name, credentials]) => ({ name, credentials, identity: null })),
    ...(await acceptedCallersOf(fixture)),
  ];
}

/** Returns the callers with a valid credential. */
export async function acceptedCallersOf(fixture: MatrixFixture): Promise<Caller[]> {
  const { app, lab, elsewhere, guest, own, outsider, pending, removed } = fixture;
  const user = async (
    name: string,
    of: TestUser,
    tenant: string,
    role: Role | null,
    labRole: Role | null,
  ): Promise<Caller> => ({
    name,
    credentials: { token: tenant === of.tenant ? of.token : await app.tokenOf({ ...of, tenant }) },
    identity: { kind: "jwt", tenant, role, labRole, owns: of.tenant !== "" },
  });
  return [
    ...callersOfPlace("lab", lab, lab),
    ...callersOfPlace("elsewhere", elsewhere, lab),
    await user("user without a namespace", outsider, "", null, null),
    await user("pending member without a namespace", pending, "", null, null),
    await user("removed member without a namespace", removed, "", null, null),
    await user("administrator with a token for another namespace", guest, own, "owner", "administrator"),
    await user("administrator with a token without a namespace", guest, "", null, "administrator"),
    {
      name: "observer's key next to the owner's token",
      credentials: { apiKey: lab.keys.get("observer"), token: lab.owner.token },
      identity: { kind: "apikey", tenant: lab.tenant, role: "observer", labRole: "observer", owns: false },
    },
  ];
}

/** Headers that only the edge may send (rules, section 3). Attackers forge these headers. */
export const forgedHeaders = ({ lab }: MatrixFixture): Record<string, string> => ({
  "x-tenant-id": lab.tenant,
  "x-role": "owner",
  "x-id": lab.owner.id,
  "x-username": lab.owner.username,
  "x-device-uid": lab.uid,
  "x-workload-id": lab.workloads.get("administrator")?.id ?? "",
  "x-internal": "true",
});
