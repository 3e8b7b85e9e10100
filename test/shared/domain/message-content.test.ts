import t from 'tap'
import { extractText } from '#shared/domain/message-content.ts'
import { parseTurns } from '#shared/domain/turn/conversation.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'

t.test('user and assistant turns are stored, nothing else', async t => {
  const turns = parseTurns([
    { role: 'system', content: 'be kind' },
    { role: 'developer', content: 'be brief' },
    { role: 'user', content: 'my cat is called Ada', timestamp: 5, name: 'Maya' },
    { role: 'assistant', content: 'noted' },
    { role: 'tool', content: '{"temperature": 3}' },
    { role: 'user', content: 'a secret', memory: false },
    { role: 'user', content: '  \n ' },
    { role: 'assistant', content: null },
    { role: 'toString', content: 'inherited names are no roles' },
  ])
  t.same(turns, [
    { role: 'user', text: 'my cat is called Ada', at: 5, speaker: 'Maya' },
    { role: 'assistant', text: 'noted' },
  ])
})

t.test('of parts texts count, media leave a placeholder, tools and thinking nothing', async t => {
  const text = extractText([
    { type: 'text', text: 'look at this' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'input_audio', input_audio: { data: 'AAAA' } },
    { type: 'document', source: {} },
    { type: 'tool_use', id: 't', name: 'weather', input: {} },
    { type: 'thinking', thinking: 'hmm' },
    { text: 'a thought', thought: true },
    { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
    { text: 'what is it?' },
    null,
    7,
  ])
  t.equal(text, 'look at this\n[image]\n[audio]\n[file]\n[file]\nwhat is it?')
  t.equal(extractText({ text: 'no array' }), '')
})

t.test('an echo of our own block is not stored again', async t => {
  const block = renderContextBlock(
    [{ id: 'a', tier: 1, role: 'user', text: 'my cat is called Ada', at: 0, tokens: 6 }],
    1_000,
  )!
  t.same(parseTurns([{ role: 'user', content: block }]), [])
  t.same(parseTurns([{ role: 'user', content: `${block}\n\nWhat is my cat called?` }]), [
    { role: 'user', text: 'What is my cat called?' },
  ])
  t.same(parseTurns([{ role: 'user', content: [{ text: block }, { text: 'And now?' }] }]), [
    { role: 'user', text: 'And now?' },
  ])
})
