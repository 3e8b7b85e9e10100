import { useState } from 'preact/hooks'
import { go } from '#api/console/app/address.ts'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { choiceField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { faultNote, shown } from '#api/console/app/parts/states.ts'
import { OrgExport } from '#api/console/app/org/export.ts'
import { OrgPolicy } from '#api/console/app/org/policy.ts'
import { useOrg, type OfOrg, type Org } from '#api/console/app/org/own.ts'
import { say } from '#api/console/app/said.ts'
import { providers } from '#api/console/app/vault/provider-keys.ts'

/** The name and the models of an organization, and its end. */
export function Settings({ org }: OfOrg): View {
  const asked = useOrg(org)
  return page({
    title: 'Settings',
    words: asked.answer?.name ?? 'Of the organization',
    children: shown(asked, 'settings', found =>
      part(SettingsForm, { found, key: found.updated_at, onSaved: asked.again }),
    ),
  })
}

function SettingsForm({ found, onSaved }: { found: Org; onSaved: () => void }): View {
  const { org_id, name, processor_provider, extract_model, classify_model } = found
  const [given, setGiven] = useState({ name, processor_provider, extract_model, classify_model })
  const [removing, setRemoving] = useState(false)
  const doing = useDoing()
  const set = (changed: Partial<typeof given>): void => setGiven({ ...given, ...changed })
  const params = { orgId: org_id }
  const save = async (): Promise<void> => {
    await call('PATCH /v1/orgs/:orgId', { params, body: given })
    say('The settings are saved.')
    onSaved()
  }
  return html`<div class="stack-wide">
    <form class="panel stack" onSubmit=${onSubmit(() => doing.run(save))}>
      ${textField({ label: 'Name', value: given.name, onValue: name => set({ name }), required: true, maxlength: 200 })}
      ${choiceField({
        label: 'Provider',
        value: given.processor_provider,
        onValue: processor_provider => set({ processor_provider }),
        choices: providers.map(each => [each, each] as const),
        hint: 'Its models read what members say and decide what is shared.',
      })}
      ${textField({
        label: 'Model that extracts',
        value: given.extract_model,
        onValue: extract_model => set({ extract_model }),
        required: true,
        maxlength: 256,
      })}
      ${textField({
        label: 'Model that classifies',
        value: given.classify_model,
        onValue: classify_model => set({ classify_model }),
        required: true,
        maxlength: 256,
      })}
      ${faultNote(doing.fault)}
      <div class="actions">
        <button class="button button-main" disabled=${doing.busy}>
          ${doing.busy ? 'Saving …' : 'Save'}
        </button>
      </div>
    </form>
    ${section('Private data', part(OrgPolicy, { org: org_id }))}
    ${section('Export', part(OrgExport, { org: org_id }))}
    ${section(
      'Remove the organization',
      html`<div class="panel stack">
        <p class="quiet">
          Its keys, roles, users, tags and shared memories go, and the private vaults of its members
          with them.
        </p>
        <div class="actions">
          <button type="button" class="button button-danger" onClick=${() => setRemoving(true)}>
            Remove
          </button>
        </div>
      </div>`,
    )}
    ${
      removing &&
      confirm({
        title: `Remove ${name}?`,
        words: html`<p>
          Everything of it is gone for everybody at once, and cannot be brought back.
        </p>`,
        verb: 'Remove',
        typed: 'remove',
        act: async () => {
          await call('DELETE /v1/orgs/:orgId', { params })
          say('The organization is removed.')
          go('orgs')
        },
        onClose: () => setRemoving(false),
      })
    }
  </div>`
}
