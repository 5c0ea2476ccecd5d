# in vllm/v1/spec_decode/eagle.py
class SpecDecodeBaseProposer:
    def load_model(self, target_model):
        if self.get_model_name(target_model) == "KimiK25ForConditionalGeneration":
            self.model.config.image_token_index = target_model.config.media_placeholder_token_id
