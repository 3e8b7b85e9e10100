import t from 'tap'
import { fileOf, listExportFiles } from '#api/import/export-files.ts'
import { recognize } from '#api/import/recognize.ts'
import {
  chatgptConversation,
  claudeConversation,
  geminiRecords,
  mem0Page,
  zepGraph,
  zipOf,
} from '#test/support/samples/foreign-exports.ts'

const unpack = () => Promise.reject(new Error('nothing is within an archive'))

const recognized = async (name: string, content: string | Buffer): Promise<string | undefined> => {
  const file = new Blob([content as Buffer<ArrayBuffer>])
  const given = [fileOf(name, () => Promise.resolve(file))]
  return recognize(await listExportFiles(given, unpack))
}

t.test('files are known by what they begin with', async t => {
  const line = JSON.stringify({
    content: 'A red canoe.',
    role: 'user',
    timestamp: 1_746_100_800_000,
  })
  const exported = JSON.stringify({ id: 'x', tier: 1, role: 'user', content: 'A red canoe.' })
  const json = JSON.stringify
  const activity = 'Takeout/My Activity/Gemini Apps/MyActivity.json'
  for (const [name, content, expected] of [
    ['chat.jsonl', `\uFEFF${line}\n${line}\n`, 'upload'],
    ['lines.txt', '{"content":"x"}\r\n', 'upload'],
    ['vault.jsonl', `${exported}\n`, 'import'],
    ['conversations.json', json([chatgptConversation()]), 'chatgpt'],
    ['renamed.json', json([claudeConversation()]), 'claude'],
    [
      'a.zip',
      zipOf({ 'user.json': '{}', 'conversations.json': json([claudeConversation()]) }),
      'claude',
    ],
    [
      'b',
      zipOf({ 'x/conversations.json': json([chatgptConversation()]), 'chat.html': '<p>' }),
      'chatgpt',
    ],
    [
      'takeout.zip',
      zipOf({ 'archive_browser.html': '', [activity]: json(geminiRecords()) }),
      'gemini',
    ],
    ['mem0.json', json(mem0Page()), 'mem0'],
    ['zep.json', json(zepGraph()), 'zep'],
    [
      'supermemory.jsonl',
      json({ documents: [], memories: [{ memory: 'x', isLatest: true }] }),
      'supermemory',
    ],
    ['honcho.json', json({ items: [{ content: 'x', peer_id: 'ada' }] }), 'honcho'],
    [
      'vault.zip',
      zipOf({ 'Daily/2026-01-02.md': 'Rowed.', '.obsidian/app.json': '{}' }),
      'markdown',
    ],
    ['note.md', '# Boats', 'markdown'],
    ['Baking.md', '---\ntitle: Baking\npermalink: main/baking\n---\nx', 'basic-memory'],
    ['tool.zip', zipOf({ 'memory/memories/notes.md': 'x' }), 'claude-memory'],
    ['report.pdf', '%PDF-1.7 \0\0', undefined],
    ['other.json', '{"a":1}', undefined],
    ['photos.zip', zipOf({ 'a.bin': '\0' }), undefined],
    ['empty', '', undefined],
  ] as const) {
    t.equal(await recognized(name, content as string), expected, name)
  }
})

t.test('lines in a list, and damaged archives, say what to change', async t => {
  await t.rejects(recognized('list.json', '[\n{"content":"x"}]'), {
    message: /list\.json is a list; a file of lines has an object on each line/,
    hint: /jq/,
  })
  const zip = zipOf({ 'conversations.json': '[]' })
  await t.rejects(recognized('a.zip', zip.subarray(0, 40)), { message: /no zip archive that can/ })
})
