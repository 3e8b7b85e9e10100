import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const clients = 6

/** A memory is deleted over one process and looked for over the other at once: it is never seen again. */
export async function proveDeletions(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const key = await cluster.createAccount('deletions')
  const [one, other] = cluster.ports as [number, number]
  let deletions = 0
  let refused = 0
  const isOver = createLimit(context, () => deletions)
  await runLoops(clients, isOver, async client => {
    const word = `mark${client}x${Math.floor(random() * 1e9)}`
    const stored = await cluster.send(one, key, '/v1/memory/ingest?wait=true', {
      body: { messages: [{ role: 'user', content: `The ${word} stands in the garden` }] },
    })
    const [id] = await findIds(one, word)
    if (stored.status !== 200 || id === undefined) return
    // Both processes have it in memory before it goes.
    await findIds(other, word)
    const { status } = await cluster.send(
      pickOne([one, other], random),
      key,
      '/v1/memory/delete-ids',
      { body: { ids: [id] } },
    )
    if (status !== 200 && status !== 202) {
      refused++
      return
    }
    deletions++
    const reads = await Promise.all([
      findIds(one, word),
      findIds(other, word),
      listed(one, word),
      listed(other, word),
    ])
    if (reads.some(ids => ids.includes(id)))
      faults.add(`${word} (${id}) was seen after its deletion`)
  })
  return {
    figures: [
      { name: 'deletions', value: deletions },
      { name: 'refused', value: refused },
      { name: 'seen again', value: faults.count, most: 0 },
    ],
    faults: faults.first,
  }

  async function findIds(port: number, word: string): Promise<string[]> {
    const { status, text } = await cluster.send(port, key, '/v1/memory/search', {
      body: { query: `${word} in the garden`, limit: 5 },
    })
    return status === 200 ? idsWith(word, (JSON.parse(text) as { memories: Row[] }).memories) : []
  }

  async function listed(port: number, word: string): Promise<string[]> {
    const { status, text } = await cluster.send(port, key, `/v1/memory/list?search=${word}`)
    return status === 200 ? idsWith(word, (JSON.parse(text) as { items: Row[] }).items) : []
  }
}

type Row = { id: string }

const idsWith = (word: string, rows: readonly Row[]): string[] =>
  rows.filter(row => JSON.stringify(row).includes(word)).map(({ id }) => id)
