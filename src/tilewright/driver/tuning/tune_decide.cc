// What becomes of what the search has found: every kernel's best schedules run against each other
// (final_race.h), then whole models do. First convolutions in other forms: those at least 3 %
// faster in the model are taken together if the model gains 1 %. Then the tuned model against the
// untuned one; kernels that are no faster inside it go back to the rules' schedules, and all of
// them do if the model loses. Verdicts go to the store, the winner into the package.
#include <algorithm>

#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/workload.h"

namespace tilewright::driver {
namespace {

/// Of the time of the rules' algorithm, for a convolution and for its model.
constexpr double kFormWins = 0.97, kModelWins = 0.99;

}  // namespace

Status TuneRun::decide() {
  // An interrupted run writes what it has; interrupting again ends that too.
  if (interrupted()) interrupt_requested = false;
  measure::Measurer* racer = interrupted() ? nullptr : measurer_.get();
  // Replayed readings are as old as they are, so that equal runs give equal packages.
  const std::string when = on_device() ? tune::utc_now() : newest_;
  verdicts_ = final_races(
      *tuner_, compiler_key(), when, racer, [&] { return rest() > 0; }, target().simulated);
  gains_.clear();
  for (TunedModel& model : plan_.models) {
    TW_TRY_STATUS(choose_forms(model));
    TW_TRY_STATUS(target().cost != nullptr ? compare_launches(model) : compare(model));
  }
  const Status written = write_package();
  if (kept_) {
    // What an interrupted run saw was not raced: it stands as readings.
    std::vector<records::Record> records;
    for (const Verdict& verdict : verdicts_)
      if (verdict.known && !interrupted()) records.push_back(verdict.record);
    if (!interrupted())
      for (records::Record& record : decided_forms()) records.push_back(std::move(record));
    TW_TRY_STATUS(keep_verdicts(*kept_, records, interrupted()));
  }
  return written;
}

Verdict* TuneRun::verdict_of(const compile::KernelReport& kernel) {
  const std::string key = records::workload_key(records::workload_text(kernel.func));
  for (Verdict& verdict : verdicts_)
    if (verdict.known && verdict.record.workload == key) return &verdict;
  return nullptr;
}

/// Which convolutions take another algorithm than by rule, all kernels being tuned: those that are
/// faster inside the model, if the model with them is faster as a whole.
Status TuneRun::choose_forms(TunedModel& model) {
  if (model.others.empty() || !model.session || interrupted()) return {};
  const double turn = model.compile_seconds + race_seconds();
  if (!time_for(static_cast<double>(3 + model.others.size()) * turn)) return {};
  const auto usual = TW_TRY(open_tuned(model, {}));
  std::map<std::string, std::pair<double, records::Record>> best;  // share of the usual time
  for (OtherForms& forms : model.others) {
    std::vector<records::Record> all;
    for (const ConvForms& conv : forms.convs)
      all.push_back(form_record(conv.conv, conv.other, compile_, 0));
    const auto other = TW_TRY(open_tuned(model, all));
    const Duel times = TW_TRY(race(*usual, *other));
    for (size_t i = 0; i < all.size(); ++i) {
      ConvForms& conv = forms.convs[i];
      conv.before = time_of(conv, times.steps_before);
      conv.after = time_of(conv, times.steps_after);
      all[i].cost = all[i].least = conv.after;
      const std::pair found(conv.after / conv.before, all[i]);
      auto& known = best.emplace(all[i].workload, found).first->second;
      if (found.first < known.first) known = found;
    }
  }
  std::vector<records::Record> taken;
  for (const auto& [conv, form] : best)
    if (form.first < kFormWins) taken.push_back(form.second);
  if (!taken.empty()) {
    const auto mixed = TW_TRY(open_tuned(model, taken));
    const Duel whole = TW_TRY(race(*usual, *mixed));
    if (whole.after < kModelWins * whole.before) model.forms = taken;
  }
  model.tuned.reset();
  return {};
}

compile::CompileOptions TuneRun::with_verdicts(const std::vector<records::Record>& forms) const {
  compile::CompileOptions options = compile_;
  options.tuned = find_among(verdicts_);
  if (!forms.empty()) options.form = find_form(forms);
  return options;
}

/// `model` with the present verdicts and `forms`.
Result<std::unique_ptr<runtime::Session>> TuneRun::open_tuned(
    TunedModel& model, const std::vector<records::Record>& forms) {
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(forms)));
  runtime::SessionOptions session_options;
  session_options.threads = threads_of(settings_.subject);
  session_options.flush_denormals = true;
  return compile::open_session(*model.tuned, session_options);
}

Result<Duel> TuneRun::race(runtime::Session& before, runtime::Session& after) const {
  return duel(before, after, settings_.subject.seed, duel_seconds());
}

/// The model as compiled by rule against its form with the present verdicts.
Result<Duel> TuneRun::race_tuned(TunedModel& model) {
  if (remote_) {
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
    return duel_there(model);
  }
  if (target().duel != nullptr) {
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
    return target().duel(model.compiled, *model.tuned, settings_.subject, duel_seconds());
  }
  const auto session = TW_TRY(open_tuned(model, model.forms));
  return race(*model.session, *session);
}

/// The tuned model against the untuned one. Kernels that are no faster inside the model, and all
/// where it loses as a whole, keep the rules' schedules.
Status TuneRun::compare(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  bool any = !model.forms.empty();
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    const Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr) continue;
    const auto uses = static_cast<double>(kernel.steps.size());
    any |= verdict->better;
    gain.before += uses * verdict->rule_cost;
    gain.after += uses * verdict->record.cost;
  }
  if (model.latency > 0 && !any) gain.before = gain.after = model.latency;
  const double turn = model.compile_seconds + race_seconds();
  if (!(runs_here() || remote_) || !any || interrupted() || !time_for(turn)) {
    gains_.push_back(std::move(gain));
    return {};
  }
  Result<Duel> raced = race_tuned(model);
  if (!raced && remote_ && raced.error().kind != ErrorKind::Interrupted) {
    say(fmt::format("warning: {} as a whole could not be measured: {}", gain.name,
                    raced.error().what));
    gains_.push_back(std::move(gain));
    return {};
  }
  Duel times = TW_TRY(std::move(raced));
  if (give_up_slower(model, times) && (time_for(turn) || times.after >= times.before))
    times = TW_TRY(race_tuned(model));
  gain.raced = true;
  gain.before = times.before;
  gain.after = gain.in_race = times.after;
  if (times.after >= times.before) {
    gain.after = times.before;
    model.tuned.reset();
    model.forms.clear();
    for (const compile::KernelReport* kernel : compile::all_kernels(model.compiled))
      if (Verdict* verdict = verdict_of(*kernel)) give_up(*verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Launches as a whole, on the simulator: the tuned ones must take fewer cycles.
Status TuneRun::compare_launches(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  gain.before = TW_TRY(target().cost(model.compiled, compile_));
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
  gain.after = gain.in_race = TW_TRY(target().cost(*model.tuned, compile_));
  gain.raced = true;
  if (gain.after >= gain.before) {
    gain.after = gain.before;
    model.tuned.reset();
    for (Verdict& verdict : verdicts_)
      if (verdict.known) give_up(verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Kernels that are no faster inside the model keep the rules' schedules; whether there are any.
bool TuneRun::give_up_slower(const TunedModel& model, const Duel& times) {
  bool any = false;
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr || !verdict->better) continue;
    double before = 0, after = 0;
    for (const std::string& step : kernel.steps) {
      const auto then = times.steps_before.find(step), now = times.steps_after.find(step);
      if (then == times.steps_before.end() || now == times.steps_after.end()) continue;
      const bool open = std::any_of(model.others.begin(), model.others.end(),
                                    [&](const OtherForms& forms) { return computes(forms, step); });
      if (!model.forms.empty() && open) continue;  // perhaps of another form
      before += then->second, after += now->second;
    }
    if (after < before || before == 0) continue;
    give_up(*verdict);
    any = true;
  }
  return any;
}

/// For every convolution that had a choice, what it came to.
std::vector<records::Record> TuneRun::decided_forms() const {
  std::map<std::string, records::Record> decided;
  each_form(plan_, [&](const ConvForms& conv, bool won) {
    const records::Record record = form_record(conv.conv, won ? conv.other : conv.rule, compile_,
                                               won ? conv.after : conv.before);
    if (!decided.emplace(record.workload, record).second && won) decided[record.workload] = record;
  });
  std::vector<records::Record> records;
  for (auto& [key, record] : decided) records.push_back(std::move(record));
  return records;
}

Status TuneRun::write_package() {
  if (settings_.output.empty()) return {};
  TunedModel& model = plan_.models.at(0);
  if (!model.tuned)
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(model.forms)));
  return save_with_samples(settings_.output, model.subject, *model.tuned, compile_, "auto");
}

}  // namespace tilewright::driver
