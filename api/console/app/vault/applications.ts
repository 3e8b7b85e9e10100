import { call } from '#api/console/app/api-call.ts'
import { describeUse } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import type { Application } from '#api/contract/generated/types.ts'

/** Lists the clients that have logged in to the vault, and disconnects them. */
export function Applications(): View {
  const list = usePages('GET /v1/applications', { query: { limit: 20 } })
  return page({
    title: 'Applications',
    description: 'Clients that were let in with a login. Each has tokens of its own, and no key.',
    children: editableList(list, {
      what: 'applications',
      empty: [
        'No application is connected',
        `Where the operator has switched the login on, a client is given ${location.origin}/mcp and no key.`,
      ],
      key: ({ id }) => id,
      main: applicationView,
      actions: application => [revokeButton(application, list.refetch)],
    }),
  })
}

const applicationView = (application: Application): View => {
  const { name, client_id, redirect_host, scopes, external_id } = application
  const origin = client_id.startsWith('https:') ? new URL(client_id).host : redirect_host
  return html`<p class="row-title">
      ${name} ${scopes.map(scope => chip(scope))}
      ${external_id !== null && chip(`user ${external_id}`)}
    </p>
    <p class="quiet">
      ${origin} · ${describeUse(application.created_at, application.last_used_at)}
    </p>`
}

const revokeButton = ({ id, name }: Application, onRevoked: () => void): View =>
  confirmButton('Revoke', {
    about: name,
    title: `Revoke the access of ${name}?`,
    message: 'It reads and stores nothing from the next request on. What it has stored stays.',
    act: async () => {
      await call('DELETE /v1/applications/:applicationId', { params: { applicationId: id } })
      onRevoked()
    },
  })
