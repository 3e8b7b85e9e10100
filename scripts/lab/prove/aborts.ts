import {
  createLimit,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const clients = 16
/** A call that is open at the provider so long after the last one's end never ends. */
const patienceMs = 60_000

/** Clients leave proxied streams at random moments: every call ends at the provider too. */
export async function proveAborts(context: SectionContext): Promise<SectionResult> {
  const { cluster, provider, random } = context
  const key = await cluster.createAccount('aborts')
  let aborted = 0
  const isOver = createLimit(context, () => aborted)
  await runLoops(clients, isOver, async client => {
    const signal = AbortSignal.timeout(1 + Math.floor(random() * 400))
    await cluster.send(pickOne(cluster.ports, random), 'sk-of-the-proof', '/v1/chat/completions', {
      body: {
        model: 'openai/gpt-5',
        stream: true,
        messages: [{ role: 'user', content: `Tell me about harbour ${client} ${aborted}` }],
      },
      headers: { 'x-memory-key': key },
      signal,
    })
    if (signal.aborted) aborted++
  })
  const until = Date.now() + patienceMs
  while (provider.open > 0 && Date.now() < until)
    await new Promise(resolve => setTimeout(resolve, 50))
  return {
    figures: [
      { name: 'calls aborted by their client', value: aborted },
      { name: 'calls that reached the provider', value: provider.started },
      { name: 'calls left open at the provider', value: provider.open, most: 0 },
    ],
    faults:
      provider.open > 0 ? [`${provider.open} calls are open ${patienceMs} ms after the last`] : [],
  }
}
