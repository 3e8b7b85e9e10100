import { notesOf } from '#api/client/programs/programs.ts'
import { snippetsOf } from '#api/client/programs/snippets.ts'
import type { Client, ClientFile } from '#scripts/clients/connect/client.ts'
import { fill } from '#scripts/clients/connect/fill.ts'

const place = { url: '$URL', key: '$KEY', rights: 'memory' } as const

/** The row of a client in the guide for agents: what its files get, what is to be known, which version was seen. */
export function guideRow(client: Client): string {
  const texts = snippetsOf(client, place)
  const files = client.files.map((file, index) => {
    const name = file.shown.includes(' ') ? file.shown : `\`${file.shown}\``
    return `${name}: ${codeOf(file, texts[index]!.text)}`
  })
  const notes = notesOf(client, 'console', place.rights)
  return `| ${[client.name, files.join('; '), notes.join(' '), client.seen].join(' | ')} |`
}

/** The settings of a file as code on one line, and the command that writes the same. */
function codeOf({ format, shell }: ClientFile, text: string): string {
  const parts =
    format === 'json'
      ? [JSON.stringify(JSON.parse(text), null, 1).replaceAll(/\n */g, ' ')]
      : text.split('\n').filter(line => line !== '')
  const code = parts.map(part => `\`${part}\``).join(', ')
  return shell === undefined ? code : `${code}, or \`${fill(shell, place)}\``
}
