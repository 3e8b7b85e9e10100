import { createPoster } from '#scripts/bench/process.ts'

/** A member of a team that differs from others by its hidden memories alone. */
export type WallTeam = {
  key: string
  /** Of a memory hidden from the member, or of none. */
  hidden: string
}

const visibleMax = 300
const hiddenMax = 1_000

/** What the member asks about; the hidden memories are about nothing else. */
export const topic = 'the pay of Eve in the design team'

/** Creates a team through the API: a member without roles, memories for all, and hidden ones or none. */
export async function createWallTeam(
  port: number,
  adminKey: string,
  { withHidden }: { withHidden: boolean },
): Promise<WallTeam> {
  const post = async (path: string, body: object) => {
    const { status, text } = await createPoster(port, path, adminKey)(JSON.stringify(body))
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
    return JSON.parse(text)
  }
  const { org_id: org } = await post('/v1/orgs', { name: `Wall ${crypto.randomUUID()}` })
  const path = `/v1/orgs/${org}`
  await post(`${path}/tags`, { label: 'people', question: 'Is it about pay?' })
  const { memory_key: key } = await post(`${path}/keys`, { team_member_id: 'bob@example.com' })
  const share = async (texts: readonly string[], tags: readonly string[]): Promise<string[]> => {
    const ids: string[] = []
    for (let from = 0; from < texts.length; from += 100) {
      const items = texts.slice(from, from + 100).map(text => ({ text, tags }))
      const seeded = await post(`${path}/memories`, { items })
      ids.push(...seeded.items.map((item: { mem_id: string }) => item.mem_id))
    }
    return ids
  }
  await share(
    Array.from(
      { length: visibleMax },
      (_, n) => `Item ${n} of the office list is on floor ${n % 9}.`,
    ),
    [],
  )
  const secrets = Array.from(
    { length: hiddenMax },
    (_, n) => `${topic} was ${n} in month ${n % 12}.`,
  )
  const [hidden = crypto.randomUUID()] = withHidden ? await share(secrets, ['people']) : []
  return { key, hidden }
}
