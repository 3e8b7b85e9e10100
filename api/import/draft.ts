/** A memory as an importer reads it from an export, before the limits of the service are applied. */
export type Draft = {
  content: string
  role?: 'user' | 'assistant' | 'system'
  /** ISO 8601; without it the memory gets the time of the import. */
  timestamp?: string | undefined
  /** ISO 8601: the moment at which it expires. */
  expiresAt?: string | undefined
  /** Where it comes from: `source`, `conversation`, `title`, `speaker`, `kind`. */
  metadata: Readonly<Record<string, unknown>>
}

/** A line for the service: of an upload, or of an export of this service. */
export type ImportLine = {
  kind: 'upload' | 'import'
  text: string
  /** ISO 8601; undefined where the export has no time. */
  timestamp: string | undefined
  /** The id of what it was said in. */
  conversation?: string
}

/** Counts what an import leaves out, by its description in plain words. */
export class Losses {
  readonly #counts = new Map<string, number>()

  add(what: string, count = 1): void {
    if (count > 0) this.#counts.set(what, (this.#counts.get(what) ?? 0) + count)
  }

  /** The most frequent first. */
  list(): { what: string; count: number }[] {
    return [...this.#counts]
      .map(([what, count]) => ({ what, count }))
      .toSorted((one, other) => other.count - one.count)
  }
}
