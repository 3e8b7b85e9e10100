import t from 'tap'
import { buildHarmVaults, type HarmCase } from '#scripts/lab/bench/harm/harm-set.ts'
import { answerAsStubAgent, isRight, ownAnswer } from '#scripts/lab/bench/harm/stub-agent.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/**
 * An agent that one irrelevant line makes wrong, behind the proxy: it does better with memory than without,
 * and loses next to nothing where memory cannot help.
 */

const { provider, backend, base, newKey } = await startProxyFixture(t)

type Prompt = { messages: { content: string }[] }
provider.respondAlways((seen, answer) => {
  const { messages } = JSON.parse(seen.body.toString()) as Prompt
  const prompt = messages.map(({ content }) => content).join('\n\n')
  return respondJson(chatCompletion(answerAsStubAgent(prompt)))(seen, answer)
})

const vaults = buildHarmVaults('heldout').filter(({ language }) =>
  ['english', 'german'].includes(language),
)

async function answerTo(key: string, content: string): Promise<string> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key },
    body: JSON.stringify({ model: 'openai/gpt-5', messages: [{ role: 'user', content }] }),
  })
  const { choices } = (await response.json()) as { choices: { message: Prompt['messages'][0] }[] }
  return choices[0]!.message.content
}

async function countRight(key: string, asked: readonly HarmCase[]): Promise<number> {
  let right = 0
  for (const one of asked) if (isRight(await answerTo(key, one.text), one)) right++
  return right
}

t.test('an irrelevant line makes the answer wrong', async t => {
  const line = (text: string) => `[1 day ago · 2026-11-19 12:00 UTC · user] ${text}`
  const block = (...texts: string[]) =>
    ['<memory_context>', ...texts.map(line), '</memory_context>', 'Where is it?'].join('\n')
  const wanted = { answer: 'It is here.' }
  t.ok(isRight(answerAsStubAgent(block('It is here.')), wanted))
  t.notOk(isRight(answerAsStubAgent(block('It is here.', 'Rain.')), wanted))
  t.notOk(isRight(answerAsStubAgent('Where is it?'), wanted), 'nor does it know without memory')
  t.notOk(isRight(answerAsStubAgent(block('Rain.')), {}), 'nor what it knew by itself')
  t.ok(isRight(ownAnswer, {}))
})

for (const { language, told, cases } of vaults) {
  t.test(`${language}: with memory it is right more often than without`, async t => {
    const key = await newKey()
    await insertMemories(backend, key, told)
    const asked = cases.filter(({ kind }) => kind !== 'cross-language')
    const needed = asked.filter(({ kind }) => kind === 'answerable')
    const others = asked.filter(({ kind }) => kind !== 'answerable')
    t.equal(await countRight(`${key}:off`, needed), 0)
    t.equal(await countRight(`${key}:off`, others), others.length)
    const right = await countRight(`${key}:read`, needed)
    const kept = await countRight(`${key}:read`, others)
    t.ok(right + kept > others.length, `${right} of ${needed.length}, ${kept} of ${others.length}`)
    t.ok(kept >= others.length * 0.9, `${kept} of ${others.length} that memory cannot help`)
  })
}
