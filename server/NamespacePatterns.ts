import { newPattern, type Pattern, type PatternSource } from "@gatehouse-access/sdk/policy";

/**
 * Maximum memory for the cached patterns of one namespace, in bytes. This memory is sufficient for the most expensive
 * firewall rules that the contract allows in a namespace.
 */
const NAMESPACE_MAX = 48 * 1024 * 1024;
/**
 * Maximum memory for the cached patterns of all namespaces, in bytes. This memory is sufficient for many namespaces,
 * because most patterns use much less memory than a pattern may use.
 */
const TOTAL_MAX = 2 * NAMESPACE_MAX;
/** Memory, in bytes, that the cache counts for a string that is not a valid pattern. */
const INVALID_BYTES = 1024;

interface NamespaceCache {
  readonly patterns: Map<string, Pattern | undefined>;
  bytes: number;
}

/**
 * Caches the compiled patterns of each namespace. The memory for each namespace is limited, so that no namespace can
 * evict the patterns of all other namespaces. If the memory for all namespaces is used up, the cache evicts the
 * patterns of the least recently used namespace.
 */
export class NamespacePatterns {
  readonly #namespaces = new Map<string, NamespaceCache>();
  #bytes = 0;
  readonly #namespaceMax: number;
  readonly #totalMax: number;

  /**
   * @param namespaceMax maximum memory of the patterns of one namespace, in bytes
   * @param totalMax maximum memory of all patterns, in bytes
   */
  constructor(namespaceMax = NAMESPACE_MAX, totalMax = TOTAL_MAX) {
    this.#namespaceMax = namespaceMax;
    this.#totalMax = totalMax;
  }

  /** Upper estimate of the memory that the cached patterns use, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns a function that compiles the patterns of a namespace, or takes them from the cache. Use the function for
   * one decision. Marks the namespace as the most recently used one.
   */
  of(tenantId: string): PatternSource {
    const namespace = this.#namespaceOf(tenantId);
    // The map is ordered by use: the most recently used namespace is last.
    this.#namespaces.delete(tenantId);
    this.#namespaces.set(tenantId, namespace);
    return (text) => this.#patternOf(this.#namespaceOf(tenantId), text);
  }

  #namespaceOf(tenantId: string): NamespaceCache {
    const existing = this.#namespaces.get(tenantId);
    if (existing !== undefined) return existing;
    const created: NamespaceCache = { patterns: new Map(), bytes: 0 };
    this.#namespaces.set(tenantId, created);
    return created;
  }

  #patternOf(namespace: NamespaceCache, text: string): Pattern | undefined {
    const { patterns } = namespace;
    if (patterns.has(text)) return patterns.get(text);
    const pattern = newPattern(text);
    const bytes = pattern?.bytes ?? INVALID_BYTES;
    // If the cache of the namespace is full, clear it. Evicting only the oldest pattern would not work: each decision
    // tests the patterns in the same order, so a cache that is too small would never contain the next pattern. Clearing
    // the cache also removes patterns that the namespace no longer uses.
    if (namespace.bytes + bytes > this.#namespaceMax) this.#clear(namespace);
    patterns.set(text, pattern);
    namespace.bytes += bytes;
    this.#bytes += bytes;
    this.#limit();
    return pattern;
  }

  #clear(namespace: NamespaceCache): void {
    this.#bytes -= namespace.bytes;
    namespace.bytes = 0;
    namespace.patterns.clear();
  }

  #limit(): void {
    for (const [tenantId, namespace] of this.#namespaces) {
      if (this.#bytes <= this.#totalMax) return;
      this.#clear(namespace);
      this.#namespaces.delete(tenantId);
    }
  }
}
