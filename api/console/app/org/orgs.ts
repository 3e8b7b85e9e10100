import { useState } from 'preact/hooks'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatShortDay } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { dialogButton, dialogForm, useSecret } from '#api/console/app/parts/dialogs.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { useProcessor } from '#api/console/app/org/processor-fields.ts'
import { useTeams } from '#api/console/app/teams.ts'
import type { CreateOrgAnswer, ListedOrganization } from '#api/contract/generated/types.ts'

/** Lists the organizations of an admin, and creates one. */
export function Orgs(): View {
  const [showSecret, secretView] = useSecret()
  const { list } = useTeams()!
  const onCreated = ({ org_id, org_key }: CreateOrgAnswer): void => {
    list.refetch()
    showSecret({
      title: 'The key of the organization',
      explanation:
        'It reads shared memories without tags and stores nothing. Members get keys of their own. It is shown only now.',
      secret: org_key,
      onClose: () => navigate('orgs', org_id, 'home'),
    })
  }
  const listing = {
    ...list,
    items: list.answer?.orgs ?? [],
    isLoading: list.isLoading && list.answer === undefined,
    loadMore: undefined,
  }
  return page({
    title: 'Organizations',
    description: 'A team shares a memory next to the private vaults of its members.',
    actions:
      !currentCredential()?.reviewer &&
      dialogButton(
        'New organization',
        onClose => renderComponent(CreateForm, { onClose, onCreated }),
        { kind: 'main' },
      ),
    children: html`${listView(listing, {
      what: 'organizations',
      empty: ['No organization yet', 'Create one to give members keys and share memories.'],
      show: orgs =>
        html`<ul class="plain cards">
          ${orgs.map(org => html`<li key=${org.org_id}>${orgCard(org)}</li>`)}
        </ul>`,
    })}
    ${secretView}`,
  })
}

const orgCard = ({
  org_id,
  name,
  created_at,
  processor_provider,
  notice,
  access,
}: ListedOrganization): View =>
  html`<a
    class="panel card stack-close"
    href=${hrefTo('orgs', org_id, access === 'admin' ? 'home' : 'review')}
  >
    <b>${name}</b>
    <span class="quiet"
      >Since ${formatShortDay(created_at)}, processed by ${processor_provider}</span
    >
    ${notice && html`<span>${chip('shares nothing new', 'bad', notice)}</span>`}
  </a>`

type FormProps = { onClose: () => void; onCreated: (created: CreateOrgAnswer) => void }

function CreateForm({ onClose, onCreated }: FormProps): View {
  const [name, setName] = useState('')
  const processor = useProcessor()
  const create = async (): Promise<void> => {
    await processor.prepare()
    onCreated(await call('POST /v1/orgs', { body: { name, ...processor.body } }))
  }
  return dialogForm({
    title: 'New organization',
    verb: 'Create',
    onClose,
    act: create,
    fields: html`${textField({
      label: 'Name',
      value: name,
      onValue: setName,
      required: true,
      maxlength: 200,
    })}
    ${processor.view}`,
  })
}
