import { call, filled } from '#api/console/app/api-call.ts'
import { currentCredential, maskKey } from '#api/console/app/credential.ts'
import { describeUse, formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  dialogButton,
  dialogForm,
  useSecret,
} from '#api/console/app/parts/dialogs.ts'
import { selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useListing } from '#api/console/app/queries.ts'
import type { AdminKey, CreateAdminKeyAnswer } from '#api/contract/generated/types.ts'

/** Lists the credentials that act as this admin, for the operator as any; issues and revokes them. */
export function Admins(): View {
  const [showSecret, secretView] = useSecret()
  const { operator } = currentCredential()!
  const keys = useListing('GET /v1/account/admin-keys', {}, ({ admin_keys }) => admin_keys)
  const onIssued = ({ key, email, expires_at }: CreateAdminKeyAnswer): void =>
    showSecret({
      title: `An admin credential for ${email}`,
      explanation: `It opens all organizations of ${email} until ${formatShortDay(expires_at)}, and issues and revokes others. It is shown only now.`,
      secret: key,
      onClose: keys.refetch,
    })
  return page({
    title: 'Admins',
    description: operator
      ? 'Credentials of every admin. Each opens the organizations of its email.'
      : 'Credentials for your organizations: one for each person who looks after them.',
    actions: dialogButton(
      'New admin credential',
      onClose => renderComponent(IssueForm, { onClose, onIssued }),
      { kind: 'main' },
    ),
    children: html`${editableList(keys, {
      what: 'admin credentials',
      empty: ['No credentials', 'You are signed in with the secret of the environment.'],
      key: ({ id }) => id,
      main: keyView,
      actions: key => {
        const { id, masked_key, email } = key
        return (
          isActive(key) &&
          confirmButton('Revoke', {
            about: masked_key,
            title: 'Revoke this admin credential?',
            message: isOfThisTab(key)
              ? html`<p>
                  It is the one that you are signed in with: this tab is signed out, and
                  <code>${masked_key}</code> opens nothing any more.
                </p>`
              : html`<p>
                  <code>${masked_key}</code> of ${email} opens nothing from the next request on.
                </p>`,
            act: () =>
              call('DELETE /v1/account/admin-keys/:adminKeyId', { params: { adminKeyId: id } }),
            onDone: keys.refetch,
            done: 'The credential is revoked.',
          })
        )
      },
    })}
    ${secretView}`,
  })
}

const isActive = ({ revoked_at, expires_at }: AdminKey): boolean =>
  revoked_at === null && Date.parse(expires_at) > Date.now()

const isOfThisTab = ({ masked_key }: AdminKey): boolean =>
  masked_key === maskKey(currentCredential()!)

const keyView = (key: AdminKey): View => {
  const { email, masked_key, issued_by, created_at, expires_at, revoked_at, last_used_at } = key
  const end =
    revoked_at === null
      ? `${isActive(key) ? 'Ends' : 'Ended'} ${formatRelativeTime(expires_at)}`
      : `Revoked ${formatRelativeTime(revoked_at)}`
  return html`<p class="row-title">
      ${email}${' '}${stateOf(key)}${' '}${isOfThisTab(key) && chip('this tab', 'data')}
    </p>
    <p class="quiet">
      <code>${masked_key}</code
      >${` Issued by ${issued_by}. ${describeUse(created_at, last_used_at)}. ${end}.`}
    </p>`
}

const stateOf = (key: AdminKey): View => {
  if (key.revoked_at !== null) return chip('revoked', 'bad')
  return isActive(key) ? chip('active', 'good') : chip('ended')
}

const lifetimes = { 30: '30 days', 90: '90 days', 365: 'a year', 3650: 'ten years' }

type FormProps = { onClose: () => void; onIssued: (issued: CreateAdminKeyAnswer) => void }

function IssueForm({ onClose, onIssued }: FormProps): View {
  const { fields, of } = useFields({ email: '', days: '365' })
  return dialogForm({
    title: 'New admin credential',
    verb: 'Issue',
    onClose,
    act: async () => {
      const body = { ...filled({ email: fields.email }), expires_in_days: Number(fields.days) }
      onIssued(await call('POST /v1/account/admin-keys', { body }))
    },
    fields: html`<p>
        It opens what yours opens: keys of members, settings, shared memories. Give each person one
        of their own, so that one can be revoked without the others.
      </p>
      ${
        currentCredential()!.operator &&
        textField({
          label: 'Email',
          type: 'email',
          ...of('email'),
          maxlength: 320,
          hint: 'Empty: your own. Another one has organizations of its own.',
        })
      }
      ${selectField({ label: 'Works for', ...of('days'), choices: lifetimes })}`,
  })
}
