import { readFileSync } from 'node:fs'
import exampleRequests from '#api/reference/examples.json' with { type: 'json' }
import sampleIds from '#api/reference/sample-ids.json' with { type: 'json' }

/** A request that works, as the reference shows it and the tests send it. */
export type Example = {
  path?: Record<string, unknown>
  query?: Record<string, unknown>
  headers?: Record<string, unknown>
  body?: unknown
}

/** An answer of the service to an example. */
export type RecordedAnswer = { status: number; type: string; body: unknown }

/** The answers to the examples by operation, as the test of the examples records them (`ANSWERS=write`). */
export const answers = JSON.parse(
  readFileSync(new URL('generated/answers.json', import.meta.url), 'utf8'),
) as Partial<Record<string, RecordedAnswer>>

/** Ids in the examples, to be replaced by real ones. */
export { sampleIds }

/** By operation. An endpoint that takes nothing needs none. Ids are those of `sample-ids.json`. */
export const examples: Partial<Record<string, Example>> = exampleRequests
