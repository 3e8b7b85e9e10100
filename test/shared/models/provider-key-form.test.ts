import t from 'tap'
import { builtInNames } from '#shared/core/provider-registry.ts'
import { requireKeyForm } from '#shared/models/resolve-model.ts'

const owners: [string, string][] = [
  ['sk-ant-api03-abc', 'anthropic'],
  ['sk-or-v1-abc', 'openrouter'],
  ['AIzaSyAbc', 'google'],
  ['gsk_abc', 'groq'],
  ['xai-abc', 'xai'],
]

t.test("a key of one provider's form is refused for every other", async t => {
  for (const [key, owner] of owners) {
    for (const provider of builtInNames) {
      const check = () => requireKeyForm(provider, key)
      if (provider === owner) t.doesNotThrow(check, `${key} to ${provider}`)
      else t.throws(check, { reason: 'invalid', message: new RegExp(`one of ${owner}`) })
    }
  }
})

t.test('a key without a form of its own may be any provider’s', async t => {
  for (const key of ['sk-abc', 'sk-proj-abc', 'abc', 'ant-sk-', 'x-AIza']) {
    for (const provider of builtInNames) t.doesNotThrow(() => requireKeyForm(provider, key))
  }
})
