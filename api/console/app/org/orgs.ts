import { useState } from 'preact/hooks'
import { hrefTo, navigate } from '#api/console/app/hash-route.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { ListedOrg } from '#api/console/app/org/org-queries.ts'
import { formatShortDay } from '#api/console/app/format.ts'

type CreatedOrg = { id: string; key: string }

/** Lists the organizations of an admin, and creates one. */
export function Orgs(): View {
  const [creating, setCreating] = useState(false)
  const [made, setMade] = useState<CreatedOrg>()
  const query = useQuery(signal => call('GET /v1/orgs', {}, signal), [])
  const create = html`<button
    type="button"
    class="button button-main"
    onClick=${() => setCreating(true)}
  >
    New organization
  </button>`
  return page({
    title: 'Organizations',
    description: 'A team shares a memory beside the private vaults of its members.',
    actions: currentCredential()?.reviewer ? null : create,
    children: html`<div>
      ${queryView(query, 'organizations', ({ orgs }) =>
        orgs.length === 0
          ? emptyNote('No organization yet', 'Create one to give members keys and share memories.')
          : html`<ul class="plain cards">
              ${orgs.map(org => html`<li key=${org.org_id}>${orgCard(org)}</li>`)}
            </ul>`,
      )}
      ${creating && renderComponent(CreateForm, { onClose: () => setCreating(false), onMade: setMade })}
      ${
        made &&
        secretDialog({
          title: 'The key of the organization',
          explanation:
            'It reads shared memories without tags and stores nothing. Members get keys of their own. It is shown only now.',
          secret: made.key,
          onClose: () => navigate('orgs', made.id, 'members'),
        })
      }
    </div>`,
  })
}

const orgCard = ({ org_id, name, created_at, processor_provider }: ListedOrg): View =>
  html`<a class="panel card" href=${hrefTo('orgs', org_id, 'review')}>
    <b>${name}</b>
    <span class="quiet"
      >Since ${formatShortDay(created_at)}, processed by ${processor_provider}</span
    >
  </a>`

function CreateForm({
  onClose,
  onMade,
}: {
  onClose: () => void
  onMade: (made: CreatedOrg) => void
}): View {
  const [name, setName] = useState('')
  const actionState = useAction()
  return dialogForm({
    title: 'New organization',
    verb: 'Create',
    actionState,
    onClose,
    act: async () => {
      const { org_id, org_key } = await call('POST /v1/orgs', { body: { name } })
      onMade({ id: org_id, key: org_key })
    },
    fields: textField({
      label: 'Name',
      value: name,
      onValue: setName,
      required: true,
      maxlength: 200,
      hint: 'Models are chosen for it; Settings changes them.',
    }),
  })
}
