import type { Test } from 'tap'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import { startJobWorkers, startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'

type ServiceOptions = {
  env?: Record<string, string>
  /** The queues that workers take jobs of: all unless told. */
  jobs?: readonly JobName[]
}

/** A backend with new databases, its API on loopback and its workers, until the test ends. */
export async function startService(t: Test, { env = {}, jobs = jobNames }: ServiceOptions = {}) {
  const backend = await createTestBackend(t, { env })
  if (jobs.length > 0) await startJobWorkers(backend, ...jobs)
  const { base } = await startTestApi(t, backend)
  /** A client with a key of its own, in a new account unless an email names one. */
  const newClient = (email?: string) => createKeyedClient(backend, base, email)
  return { backend, base, newClient }
}

/** All queues but one, whose jobs a test runs itself. */
export const allJobsBut = (name: JobName): JobName[] => jobNames.filter(other => other !== name)

/**
 * The pages of a list, one after the other.
 *
 * @throws when one is refused, or does not say whether another follows.
 */
export async function readPages<Item>(client: TestClient, path: string): Promise<Item[][]> {
  const pages: Item[][] = []
  for (let next = ''; pages.length < 500;) {
    const { status, body } = await client.get(path + next)
    if (status !== 200) throw new Error(`${status} ${body.error}`)
    if (body.has_more !== (body.next_cursor !== null)) throw new Error('has_more and next_cursor')
    pages.push(body.items)
    if (!body.has_more) break
    next = `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(body.next_cursor)}`
  }
  return pages
}
