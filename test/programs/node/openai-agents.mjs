// OpenAI Agents SDK: a session of the vault.
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { VaultSession } from 'memory-vault-client/openai-agents'
import { z } from 'zod'
import { check, equal, main, seen, texts, vaultOf } from './harness.mjs'

const forecast = tool({
  name: 'forecast',
  description: 'The weather to come',
  parameters: z.object({ city: z.string(), days: z.number() }),
  execute: () => 'sunny',
})
const agent = new Agent({ name: 'terse', model: 'gpt-5-mini', tools: [forecast] })
const runner = useResponses =>
  new Runner({
    tracingDisabled: true,
    modelProvider: new OpenAIProvider({
      apiKey: process.env.OPENAI_API_KEY,
      baseURL: process.env.OPENAI_BASE_URL,
      useResponses,
    }),
  })
const said = 'My canoe is red. How will the weather be?'

async function first() {
  for (const useResponses of [false, true]) {
    const id = `chat-${useResponses}`
    const session = new VaultSession(vaultOf('ada'), id)
    const { finalOutput } = await runner(useResponses).run(agent, said, { session })
    equal('the tool loop ends', finalOutput, 'The forecast says sun.')
    const stored = await texts(vaultOf('ada'), id)
    check('the words of both', stored.includes(said) && stored.includes(finalOutput), stored)
    const image = `data:image/png;base64,${'A'.repeat(200_000)}`
    const item = {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'This is my tent.' },
        { type: 'input_image', image },
      ],
    }
    await session.addItems([item])
    equal('a picture comes back whole', (await session.getItems(1))[0], item)
    check('beside it the words', (await texts(vaultOf('ada'), id)).includes('This is my tent.'))
    equal('another user has none', await new VaultSession(vaultOf('ben'), id).getItems(), [])
    await session.popItem()
  }
}

async function again() {
  await seen()
  const session = new VaultSession(vaultOf('ada'), 'chat-true')
  await runner(true).run(agent, 'What colour is it?', { session })
  check('after a restart the history is sent', (await seen()).join('').includes('My canoe is red.'))
}

await main({ first, again })
