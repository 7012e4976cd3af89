/**
 * The effect of a change on one access. `gained`: the access exists only after the change. `lost`: the access exists
 * only before the change. `kept`: the access exists before and after the change.
 */
export type MapChange = "gained" | "lost" | "kept";

/** A public key in legacy mode, or a user or service account in identity mode. */
export interface MapKey {
  /** The fingerprint of a key, or the id of a user or service account. */
  readonly fingerprint: string;
  readonly name: string;
  /** Omitted for a public key. */
  readonly kind?: "user" | "service account";
  /**
   * The e-mail address of the member who owns the key. Omitted if the key has no owner, or if the owner is not known.
   */
  readonly owner?: string;
  /** A description of the object's last change, such as `last changed by user ana`. Present only in a map of drift. */
  readonly changedBy?: string;
  /**
   * The presence of the key before and after the change. `new`: the key exists only after the change. `removed`: the
   * key exists only before the change. Omitted if the key exists before and after the change.
   */
  readonly state?: "new" | "removed";
}

export interface MapDevice {
  readonly uid: string;
  readonly name: string;
  readonly tags: readonly string[];
  /**
   * The presence of the device before and after the change. `new`: the device exists only after the change. `removed`:
   * the device exists only before the change. Omitted if the device exists before and after the change.
   */
  readonly state?: "new" | "removed";
}

/** A group of adjacent keys or devices that the map shows as one node. */
export interface MapGroup {
  readonly name: string;
  readonly from: number;
  readonly count: number;
}

/**
 * The access of one key to a set of devices. An edge combines all login names and addresses for which the change, the
 * rule and the cause are the same.
 */
export interface MapEdge {
  readonly key: number;
  readonly devices: number;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  readonly change: MapChange;
  /**
   * Index in `texts` of the rule that allows the access. For lost access, the rule that allowed it before the change.
   */
  readonly rule: number;
  /**
   * Index in `texts` of the reason why the access is gained or lost. For kept access with a changed condition or expiry
   * time, the index of the sentence about the previous condition or expiry time. Omitted for unchanged access.
   */
  readonly cause?: number;
  /** The condition of the access; omitted for access without a condition. */
  readonly condition?: MapCondition;
  /** The expiry time of the access, as text. Omitted for access that does not expire. */
  readonly until?: string;
  /**
   * Indexes in {@link AccessMapData.times} of the points in time at which the access exists. Omitted if the access
   * exists at all of them.
   */
  readonly times?: readonly number[];
}

/**
 * A condition of access. `reauthentication` and `approval`: the login waits for a re-authentication or an approval.
 * `unknown`: the service does not show whether the user has an SSH key.
 */
type MapCondition = "reauthentication" | "approval" | "unknown";

/** A sentence about a rule or a cause. */
export interface MapText {
  readonly text: string;
  /**
   * The regular expressions that `text` describes in words, each preceded by the kind of value that it matches: `login
   * ^root$`.
   */
  readonly patterns: readonly string[];
}

export interface MapSubtitle {
  readonly project?: string;
  readonly stack?: string;
  readonly service: string;
  readonly when: string;
  readonly evaluated: string;
}

/** The data that an access map shows. Names may contain any characters, since the page shows them as text. */
export interface AccessMapData {
  readonly title: string;
  readonly subtitle: MapSubtitle;
  /** True if the map compares the declared access with the live access. Gained access is then unauthorized. */
  readonly isDrift: boolean;
  /** The word for an item of `keys`. */
  readonly subject: "key" | "user";
  /** Words for each condition. */
  readonly conditions: Readonly<Record<MapCondition, string>>;
  readonly keys: readonly MapKey[];
  readonly devices: readonly MapDevice[];
  /** All keys, grouped by owner. */
  readonly people: readonly MapGroup[];
  /** All devices, grouped by tags. Large groups are split by the common part of the names. */
  readonly groups: readonly MapGroup[];
  /**
   * Sets of devices. Each set is a list of index ranges, and each range is its first and last index: `[0, 3, 7, 7]`
   * contains the devices 0 to 3 and 7.
   */
  readonly deviceSets: readonly (readonly number[])[];
  /** Sentences about rules and causes. Edges refer to a sentence by its index. */
  readonly texts: readonly MapText[];
  /** The evaluated login names. An edge that lists all of these names applies to any login name. */
  readonly logins: readonly string[];
  /** The evaluated addresses. An edge that lists all of these addresses applies to any address. */
  readonly addresses: readonly string[];
  readonly edges: readonly MapEdge[];
  /**
   * The points in time for which the map shows the access, as text: the time for which the access was evaluated, and
   * each later expiry time.
   */
  readonly times: readonly string[];
  /** Additional remarks for the reader, as sentences. */
  readonly notes: readonly string[];
}
