import t from 'tap'
import { pickDefaultModel } from '#shared/models/model-catalog.ts'

t.test('the newest of a family, by the numbers in its name', async t => {
  const openai = ['gpt-4o', 'gpt-5', 'gpt-5-mini', 'gpt-5.1', 'gpt-10-preview', 'o3', 'tts-1']
  t.equal(pickDefaultModel([{ provider: 'openai', models: openai }]), 'openai/gpt-5.1')
  const anthropic = [
    'claude-opus-4-5-20251101',
    'claude-sonnet-4-20250514',
    'claude-sonnet-4-5-20250929',
  ]
  t.equal(
    pickDefaultModel([{ provider: 'anthropic', models: anthropic }]),
    'anthropic/claude-sonnet-4-5-20250929',
  )
  const google = ['gemini-2.5-flash', 'gemini-2.5-flash-lite', 'gemini-3-flash', 'gemini-3-pro']
  t.equal(pickDefaultModel([{ provider: 'google', models: google }]), 'google/gemini-3-flash')
})

t.test('families in their order, whatever the order of the lists', async t => {
  const lists = [
    { provider: 'google', models: ['gemini-2.5-flash'] },
    { provider: 'anthropic', models: ['claude-sonnet-4-5'] },
  ] as const
  t.equal(pickDefaultModel(lists), 'anthropic/claude-sonnet-4-5')
})

t.test('else the first model there is, else none', async t => {
  const lists = [
    { provider: 'cerebras', models: [] },
    { provider: 'ollama', models: ['llama3.2:latest', 'phi4'] },
  ] as const
  t.equal(pickDefaultModel(lists), 'ollama/llama3.2:latest')
  t.equal(pickDefaultModel([]), null)
})
