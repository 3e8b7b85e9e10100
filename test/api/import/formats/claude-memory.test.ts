import t from 'tap'
import { readFromFiles } from '#test/support/samples/import-lines.ts'

const modified = Date.parse('2026-09-01T10:00:00Z')
const file = (name: string, text: string) => ({ name, text, modified })

t.test(
  'files of the tool: under their paths, in pieces, once where the words are the same',
  async t => {
    const { lines, lost, strangers } = await readFromFiles('claude-memory', [
      file('notes.md', 'I live in Husum.'),
      file('memory/memories/trips/sylt', 'The ferry leaves at nine. '.repeat(30)),
      file('memories/a.txt', 'Twice.'),
      file('memories/b.txt', 'Twice.'),
      file('memories/odd.md', 'a\0b'),
      file(`memories/${'x'.repeat(250)}.md`, 'y'),
    ])
    t.same([strangers, lost], [['memories/odd.md'], { 'files with paths over 256 characters': 1 }])
    t.same(
      lines.map(({ timestamp, metadata }) => [metadata!.file_path, timestamp!.slice(17)]),
      [
        ['/memories/notes.md', '00.000Z'],
        ['/memories/trips/sylt', '00.000Z'],
        ['/memories/trips/sylt', '00.001Z'],
        ['/memories/a.txt', '00.000Z'],
        ['/memories/b.txt', '00.001Z'],
      ],
    )
    t.same(lines[0], {
      content: 'I live in Husum.',
      role: 'user',
      timestamp: '2026-09-01T10:00:00.000Z',
      metadata: {
        file_tree: 'memories',
        file_path: '/memories/notes.md',
        source: 'claude-memory',
        speaker: 'Claude',
        origin: 'import',
        file_stamp: `${modified}:${modified}:0:1`,
      },
    })
  },
)
