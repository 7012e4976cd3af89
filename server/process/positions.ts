import { readFileSync } from "node:fs";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { LRUCache } from "lru-cache";
import { type CityResponse, Reader } from "mmdb-lib";
import { isPublic, normalAddress } from "../addresses.ts";
import { OperatorError } from "../OperatorError.ts";

/** A geographic position in degrees. The position is 0,0 if it is unknown (models section 3). */
interface Position {
  readonly latitude: number;
  readonly longitude: number;
}

export const UNKNOWN_POSITION: Position = { latitude: 0, longitude: 0 };

/**
 * Maximum number of cached addresses. A small cache is sufficient, because the devices of a fleet use few addresses and
 * report repeatedly.
 */
const KEPT = 10_000;

/**
 * Opens a position file.
 * @throws OperatorError the file cannot be read, or is not a database in the MaxMind format
 */
function open(file: string): Reader<CityResponse> {
  const named = `${file} (GATEHOUSE_GEOIP_FILE)`;
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const text = fileFailureText("read", `the position file ${named}`, error);
    throw new OperatorError(text, { cause: error });
  }
  try {
    return new Reader<CityResponse>(bytes);
  } catch (error) {
    const text = `The position file ${named} is not a database in the MaxMind format. Use an .mmdb file.`;
    throw new OperatorError(text, { cause: error });
  }
}

const isWithin = (value: unknown, limit: number): value is number =>
  typeof value === "number" && Math.abs(value) <= limit;

/** Looks up the positions of IP addresses in a position file. The content of the file stays in memory. */
export class Positions {
  readonly #file: string;
  readonly #onError: (error: unknown) => void;
  readonly #known = new LRUCache<string, Position>({ max: KEPT });
  #reader: Reader<CityResponse>;

  /**
   * Reads the position file.
   * @param file path of a database in the MaxMind format whose records have a `location`, such as GeoLite2 City
   * @param onError called if a lookup finds an error in the file's content; the lookup then returns an unknown position
   * @throws OperatorError the file cannot be read, or is not a database in the MaxMind format
   */
  constructor(file: string, onError: (error: unknown) => void) {
    this.#file = file;
    this.#onError = onError;
    this.#reader = open(file);
  }

  /**
   * Reads the position file again. If the file cannot be used, the previous content stays in use.
   * @throws OperatorError see the constructor
   */
  reload(): void {
    this.#reader = open(this.#file);
    this.#known.clear();
  }

  /**
   * Returns the position of an address. The position is unknown for addresses of private networks and for strings that
   * are not addresses.
   */
  of(text: string): Position {
    const address = normalAddress(text);
    if (address === undefined || !isPublic(address)) return UNKNOWN_POSITION;
    const known = this.#known.get(address);
    if (known) return known;
    const position = this.#look(address);
    this.#known.set(address, position);
    return position;
  }

  #look(address: string): Position {
    try {
      const { latitude, longitude } = this.#reader.get(address)?.location ?? {};
      return isWithin(latitude, 90) && isWithin(longitude, 180) ? { latitude, longitude } : UNKNOWN_POSITION;
    } catch (error) {
      this.#onError(error);
      return UNKNOWN_POSITION;
    }
  }
}
