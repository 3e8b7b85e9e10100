import data from '#api/console/app/vault/connect/clients.json' with { type: 'json' }

/** What the key of a client may do: `users` where it names the user of each call. */
export type ClientRights = 'memory' | 'users'

/** The service and the key that a snippet names; no slash at the end of the address. */
type Place = { url: string; key: string; rights: ClientRights }

/** A file, or a piece of a program, to copy. */
export type Snippet = { file: string; text: string }

/** The groups of the page, in their order. */
export const kinds = ['Programs', 'SDKs by base URL', 'Clients', 'Frameworks', 'MCP'] as const

export type ConnectedClient = {
  name: string
  kind: (typeof kinds)[number]
  snippets: (place: Place) => Snippet[]
  notes: readonly string[]
  /** Several people use it: `named` where it sends the user of each call, `unnamed` where it sends none. */
  users?: 'named' | 'unnamed'
}

/** A snippet of `clients.json`: lines, or JSON; lines and snippets may be for keys that name users alone. */
type WrittenSnippet = {
  file: string
  only?: 'users'
  lines?: (string | { users: string })[]
  json?: object
}
type WrittenClient = Omit<ConnectedClient, 'snippets'> & { snippets: WrittenSnippet[] }

const written = data as { notes: Record<string, string>; clients: Record<string, unknown> }

function textOf({ lines, json }: WrittenSnippet, { url, key, rights }: Place): string {
  const text = lines
    ? lines
        .map(line => (typeof line === 'string' ? line : rights === 'users' && line.users))
        .filter(line => line !== false)
        .join('\n')
    : JSON.stringify(json, null, 2)
  return text.replaceAll('{url}', url).replaceAll('{key}', key)
}

/** Programs, libraries and adapters, by the name in the address of the page. */
export const connectedClients: Record<string, ConnectedClient> = Object.fromEntries(
  Object.entries(written.clients as Record<string, WrittenClient>).map(([id, client]) => [
    id,
    {
      ...client,
      notes: client.notes.map(note => written.notes[note] ?? note),
      snippets: place =>
        client.snippets
          .filter(({ only }) => only === undefined || only === place.rights)
          .map(snippet => ({ file: snippet.file, text: textOf(snippet, place) })),
    },
  ]),
)
